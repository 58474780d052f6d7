package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
)

const workers = 2

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.lease").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(relevant)})).
		Watches(&coordinationv1.Lease{}, watch.ByNamespace(), builder.WithPredicates(predicate.Funcs{UpdateFunc: r.needsReconcile})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// needsReconcile reports whether a renewal needs a reconciliation. Most are only
// recorded: a thousand clusters renew several leases a second, and the timer of the
// cluster reads the record when it fires.
func (r *Reconciler) needsReconcile(e event.UpdateEvent) bool {
	lease, ok := e.ObjectNew.(*coordinationv1.Lease)
	if !ok || lease.Spec.RenewTime == nil {
		return true
	}
	return !r.heartbeats.renewed(lease.Namespace, lease.Spec.RenewTime.Time, r.Clock.Now())
}

// relevant reports whether a change of a ManagedCluster can change its conditions.
func relevant(before, after *clusterv1.ManagedCluster) bool {
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
