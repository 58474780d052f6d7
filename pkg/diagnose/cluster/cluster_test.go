package cluster_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/diagnosis"
)

func steps(tb testing.TB, objs ...client.Object) []finding.Step {
	tb.Helper()
	near := func(_ context.Context, _ client.Reader, name, otherwise string) string {
		return name + "? " + otherwise
	}
	return cluster.Steps(tb.Context(), diagnosis.Scope(tb, objs...), "cluster1", diagnose.DefaultLimit, near)
}

// joined returns a cluster that joined, and what the hub has for it.
func joined(renewed time.Time) []client.Object {
	return []client.Object{
		&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster1"},
			Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
			Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
				{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue},
				{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue},
			}},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: names.ManagedClusterLease},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}},
		},
	}
}

// TestLease: a lease is overdue after twice its duration, and lost after five times.
func TestLease(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]finding.Status{
		2 * time.Minute: finding.OK, 121 * time.Second: finding.Warning, 5 * time.Minute: finding.Warning, 301 * time.Second: finding.Failed,
	} {
		got := diagnosis.Outcome(t, steps(t, joined(diagnosis.Now().Add(-ago))...), "the agent renews its lease")
		if got.Status != want {
			t.Errorf("renewed %s ago: %+v, want %s", ago, got, want)
		}
		if want != finding.OK && got.Try != "on the managed cluster: ocm check agent" {
			t.Errorf("renewed %s ago: %+v", ago, got)
		}
	}
}

// TestUnknown: the advice for a name that the hub does not know is the caller's.
func TestUnknown(t *testing.T) {
	t.Parallel()
	got := diagnosis.Outcome(t, steps(t), "the hub knows the cluster")
	if got.Status != finding.Failed || got.Try != "cluster1? on the managed cluster: ocm check agent" {
		t.Errorf("%+v", got)
	}
}

// TestUnreported: a certificate whose expiry the agent does not report is a warning.
func TestUnreported(t *testing.T) {
	t.Parallel()
	list := steps(t, joined(diagnosis.Now())...)
	for _, name := range []string{"its credential is renewed in time", "its credentials are short-lived"} {
		if got := diagnosis.Outcome(t, list, name); got.Status != finding.Warning {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
