package taint_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/taint"
)

const (
	unavailable = clusterv1.ManagedClusterTaintUnavailable
	unreachable = clusterv1.ManagedClusterTaintUnreachable
)

// TestOneTaintOfOurs: a cluster has exactly the availability taint that its
// condition says, with the effect that keeps new work away, whatever somebody
// wrote before; other taints are theirs. With a real API server it is tested in
// package hub.
func TestOneTaintOfOurs(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dated := func(key string, effect clusterv1.TaintEffect) clusterv1.Taint {
		return clusterv1.Taint{Key: key, Effect: effect, TimeAdded: metav1.NewTime(now.Add(-time.Hour))}
	}
	ours, theirs := clusterv1.TaintEffectNoSelect, dated("team.example/reserved", clusterv1.TaintEffectPreferNoSelect)
	fresh := func(key string) clusterv1.Taint {
		return clusterv1.Taint{Key: key, Effect: ours, TimeAdded: metav1.NewTime(now)}
	}
	for _, tc := range []struct {
		name      string
		available metav1.ConditionStatus // None if empty.
		has, want []clusterv1.Taint
	}{
		{name: "available", available: metav1.ConditionTrue},
		{name: "available again", available: metav1.ConditionTrue, has: []clusterv1.Taint{theirs, dated(unreachable, ours), dated(unavailable, ours)}, want: []clusterv1.Taint{theirs}},
		{name: "unavailable", available: metav1.ConditionFalse, want: []clusterv1.Taint{fresh(unavailable)}},
		{name: "unavailable as before", available: metav1.ConditionFalse, has: []clusterv1.Taint{dated(unavailable, ours)}, want: []clusterv1.Taint{dated(unavailable, ours)}},
		{name: "unknown", available: metav1.ConditionUnknown, has: []clusterv1.Taint{dated(unavailable, ours), theirs}, want: []clusterv1.Taint{theirs, fresh(unreachable)}},
		{name: "never heard of", want: []clusterv1.Taint{fresh(unreachable)}},
		{
			name: "ours with another effect", available: metav1.ConditionUnknown,
			has:  []clusterv1.Taint{dated(unreachable, clusterv1.TaintEffectPreferNoSelect)},
			want: []clusterv1.Taint{fresh(unreachable)},
		},
		{
			name: "ours with both effects", available: metav1.ConditionUnknown,
			has:  []clusterv1.Taint{dated(unreachable, clusterv1.TaintEffectNoSelectIfNew), dated(unreachable, ours)},
			want: []clusterv1.Taint{dated(unreachable, ours)},
		},
		{
			name: "theirs without a time", available: metav1.ConditionTrue,
			has:  []clusterv1.Taint{{Key: "a", Effect: ours}},
			want: []clusterv1.Taint{fresh("a")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))}}
			cluster.Spec.Taints = tc.has
			if tc.available != "" {
				cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: tc.available}}
			}
			c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).Build()
			r := &taint.Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(now)}
			for range 2 { // The second look changes nothing.
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "c1"}}); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, cluster.Spec.Taints, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
