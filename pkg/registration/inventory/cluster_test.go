package inventory_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

func cluster(accepts bool, conditions ...metav1.Condition) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	c.Spec.HubAcceptsClient = accepts
	c.Status.Conditions = conditions
	return c
}

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Message: message}
}

func TestDescribeSaysWhatIsMissingFirst(t *testing.T) {
	t.Parallel()
	accepted := condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "")
	joined := condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue, "")
	available := condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "fine")
	deleting := cluster(true, accepted, joined)
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"a/b"}
	for _, tc := range []struct {
		name     string
		cluster  *clusterv1.ManagedCluster
		requests []approval.Request
		want     string
	}{
		{name: "new", cluster: cluster(false), want: "waits to be accepted"},
		{name: "denied", cluster: cluster(false, condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "")), want: "denied"},
		{name: "the hub sleeps", cluster: cluster(true), want: "the hub's controller has not acted on it"},
		{name: "the hub failed", cluster: cluster(true, condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "no quota")), want: "no quota"},
		{name: "not approved", cluster: cluster(true, accepted), requests: []approval.Request{{Name: "r", State: approval.Pending}}, want: "request r waits to be approved"},
		{name: "not signed", cluster: cluster(true, accepted), requests: []approval.Request{{Name: "r", State: approval.Approved}}, want: "request r is approved, not issued"},
		{name: "issued", cluster: cluster(true, accepted), requests: []approval.Request{{Name: "r", State: approval.Issued}}, want: "waits for the agent to use its credential"},
		{name: "silent", cluster: cluster(true, accepted, joined), want: "the agent has not reported yet"},
		{
			name:    "lost",
			cluster: cluster(true, accepted, joined, condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, "no lease")), want: "no lease",
		},
		{name: "well", cluster: cluster(true, accepted, joined, condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, "fine"))},
		{
			name: "two requests", cluster: cluster(false), requests: []approval.Request{{State: approval.Pending, Fingerprint: "A"}, {State: approval.Pending, Fingerprint: "B"}},
			want: "conflicting requests with the keys A, B; accept one by its fingerprint",
		},
		{name: "one request twice", cluster: cluster(false), requests: []approval.Request{{State: approval.Pending, Fingerprint: "A"}, {State: approval.Pending, Fingerprint: "A"}}, want: "waits to be accepted"},
		{name: "a denied intruder", cluster: cluster(true, accepted, joined, available), requests: []approval.Request{{State: approval.Denied, Fingerprint: "A"}}},
		{name: "a request that can never be approved", cluster: cluster(true, accepted, joined, available), requests: []approval.Request{{State: approval.Pending, Rejection: "x"}}},
		{
			name: "an intruder", cluster: cluster(true, accepted, joined, available), requests: []approval.Request{{State: approval.Issued, Fingerprint: "A"}, {State: approval.Pending, Fingerprint: "B"}},
			want: "conflicting request with the key B;",
		},
		{name: "its own key again", cluster: cluster(true, accepted, joined, available), requests: []approval.Request{{State: approval.Issued, Fingerprint: "A"}, {State: approval.Pending, Fingerprint: "A"}}},
		{name: "going", cluster: deleting, want: "waits for a/b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := inventory.Describe(drivers.All(), tc.cluster, tc.requests).Reason
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestDescribeNamesTheAcceptedKey is about a cluster that renewed its credential
// and whose name an intruder tried to take.
func TestDescribeNamesTheAcceptedKey(t *testing.T) {
	t.Parallel()
	requests := []approval.Request{
		{State: approval.Issued, Fingerprint: "first"},
		{State: approval.Denied, Fingerprint: "intruder"},
		{State: approval.Issued, Fingerprint: "second", Renewal: true},
		{State: approval.Failed, Fingerprint: "failed"},
	}
	if got := inventory.Describe(drivers.All(), cluster(true), requests); got.Key != "second" || len(got.PendingKeys()) > 0 {
		t.Errorf("key %q, pending %v", got.Key, got.PendingKeys())
	}
	if got := inventory.Describe(drivers.All(), cluster(false), requests); got.Key != "" {
		t.Errorf("a cluster that is not accepted has the key %q", got.Key)
	}
}
