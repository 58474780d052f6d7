package hub_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

// cluster returns an accepted cluster that joined, with the status of its availability.
func cluster(name string, available metav1.ConditionStatus) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue},
			{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue},
			{Type: clusterv1.ManagedClusterConditionAvailable, Status: available},
		}},
	}
}

func steps(tb testing.TB, objs ...client.Object) []finding.Step {
	tb.Helper()
	s := diagnosis.Scope(tb, append(objs, &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterManagerName}})...)
	s.Drivers = drivers.All()
	return hub.Steps(s, diagnose.DefaultLimit, "not in this test")
}

// TestClusters: clusters that wait are a warning, and one whose agent is silent fails the check.
func TestClusters(t *testing.T) {
	t.Parallel()
	ready, silent := cluster("ready", metav1.ConditionTrue), cluster("silent", metav1.ConditionUnknown)
	pending := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "pending"}}
	for name, tc := range map[string]struct {
		clusters []client.Object
		want     finding.Outcome
	}{
		"ready":   {[]client.Object{ready}, finding.Good("1 clusters, 1 of them ready")},
		"pending": {[]client.Object{ready, pending}, finding.Caution("", "2 clusters, 1 of them ready\n1 waiting to be accepted: pending")},
		"silent": {
			[]client.Object{ready, pending, silent},
			finding.Bad("", "3 clusters, 1 of them ready\n1 with a silent agent: silent\n1 waiting to be accepted: pending"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := diagnosis.Outcome(t, steps(t, tc.clusters...), "all clusters are well")
			if got.Status != tc.want.Status || got.Message != tc.want.Message {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestNoHub: without a ClusterManager, the later checks are skipped.
func TestNoHub(t *testing.T) {
	t.Parallel()
	list := hub.Steps(diagnosis.Scope(t), diagnose.DefaultLimit, "")
	if got := diagnosis.Outcome(t, list, "the hub is installed"); got.Status != finding.Failed || got.Try != "ocm init --wait" {
		t.Errorf("%+v", got)
	}
	if got := diagnosis.Outcome(t, list, "the hub signs client certificates"); got.Status != finding.Skipped {
		t.Errorf("%+v", got)
	}
}

// TestSelfTestIsSkipped: the caller's reason is in the report.
func TestSelfTestIsSkipped(t *testing.T) {
	t.Parallel()
	got := diagnosis.Outcome(t, steps(t), "the hub signs client certificates")
	if got.Status != finding.Skipped || !strings.Contains(got.Message, "not in this test") {
		t.Errorf("%+v", got)
	}
}
