package taint

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/grace"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.taint"

// Reconciler sets the availability taints.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock is the hub's.
	Clock clock.PassiveClock
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.taint").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(relevant)})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Reconcile(ctx, r.Client, req, r.reconcile)
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	want, again := wanted(cluster, now)
	taints := dated(replaced(cluster.Spec.Taints, want, now), now)
	if equality.Semantic.DeepEqual(taints, cluster.Spec.Taints) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{RequeueAfter: again}, client.IgnoreNotFound(clusterpatch.Taints(ctx, r.Client, Owner, cluster, taints))
}

// wanted returns the key of the taint that a cluster should have, empty for none, and
// when to check a cluster again that may still be joining.
// See docs/reference/wire-contract.md#taints.
func wanted(cluster *clusterv1.ManagedCluster, now time.Time) (key string, again time.Duration) {
	available := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case available == nil:
		again = cluster.CreationTimestamp.Add(grace.Of(cluster)).Sub(now)
		if again > 0 {
			return "", again
		}
		return clusterv1.ManagedClusterTaintUnreachable, 0
	case available.Status == metav1.ConditionTrue:
		return "", 0
	case available.Status == metav1.ConditionFalse:
		return clusterv1.ManagedClusterTaintUnavailable, 0
	}
	return clusterv1.ManagedClusterTaintUnreachable, 0
}

// replaced returns taints with the wanted one of this controller and without its
// others.
func replaced(taints []clusterv1.Taint, want string, now time.Time) []clusterv1.Taint {
	ours := []string{clusterv1.ManagedClusterTaintUnavailable, clusterv1.ManagedClusterTaintUnreachable}
	have := false
	remaining := slices.DeleteFunc(slices.Clone(taints), func(taint clusterv1.Taint) bool {
		if !slices.Contains(ours, taint.Key) {
			return false
		}
		if taint.Key == want && taint.Effect == clusterv1.TaintEffectNoSelect && !have {
			have = true
			return false
		}
		return true
	})
	if want == "" || have {
		return remaining
	}
	return append(remaining, clusterv1.Taint{Key: want, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(now)})
}

// dated sets the time of taints without one. Users leave it out, because admission
// lets only the hub set it.
func dated(taints []clusterv1.Taint, now time.Time) []clusterv1.Taint {
	for i := range taints {
		if taints[i].TimeAdded.IsZero() {
			taints[i].TimeAdded = metav1.NewTime(now)
		}
	}
	return taints
}

// relevant reports whether a change of a ManagedCluster can change its taints.
func relevant(before, after *clusterv1.ManagedCluster) bool {
	return available(before) != available(after) ||
		before.Spec.LeaseDurationSeconds != after.Spec.LeaseDurationSeconds ||
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
}

func available(cluster *clusterv1.ManagedCluster) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); c != nil {
		return c.Status
	}
	return ""
}
