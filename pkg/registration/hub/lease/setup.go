package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const workers = 2

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.lease").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: concerns})).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(cluster),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: r.news})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

func cluster(_ context.Context, lease client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: lease.GetNamespace()}}}
}

// news reports whether a renewal needs to be looked at. Of most it is enough to
// take note: with a thousand clusters there are some every second, and the timer
// of the cluster finds the note when it runs out.
func (r *Reconciler) news(e event.UpdateEvent) bool {
	lease, ok := e.ObjectNew.(*coordinationv1.Lease)
	if !ok || lease.Spec.RenewTime == nil {
		return true
	}
	return !r.seen.renewed(lease.Namespace, lease.Spec.RenewTime.Time, r.Clock.Now())
}

// concerns reports whether a change of a ManagedCluster can change the verdict.
func concerns(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*clusterv1.ManagedCluster)
	after, ok2 := e.ObjectNew.(*clusterv1.ManagedCluster)
	if !ok1 || !ok2 {
		return false
	}
	return before.Spec.LeaseDurationSeconds != after.Spec.LeaseDurationSeconds ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		status(before, clusterv1.ManagedClusterConditionHubAccepted) != status(after, clusterv1.ManagedClusterConditionHubAccepted) ||
		status(before, clusterv1.ManagedClusterConditionAvailable) != status(after, clusterv1.ManagedClusterConditionAvailable)
}

func status(cluster *clusterv1.ManagedCluster, kind string) string {
	if condition := apimeta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
		return string(condition.Status)
	}
	return ""
}
