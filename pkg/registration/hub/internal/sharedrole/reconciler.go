package sharedrole

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Reconciler creates and repairs the shared ClusterRoles, and deletes them with the
// last ManagedCluster.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Labels are put on the ClusterRoles.
	Labels map[string]string
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	never := func(event.UpdateEvent) bool { return false }
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.clusterrole").
		Watches(&clusterv1.ManagedCluster{}, one(), builder.WithPredicates(predicate.Funcs{UpdateFunc: never})).
		Watches(&rbacv1.ClusterRole{}, one(), builder.WithPredicates(predicate.NewPredicateFuncs(shared))).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var clusters clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &clusters, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, err
	}
	if len(clusters.Items) == 0 {
		return ctrl.Result{}, Remove(ctx, r.Client)
	}
	return ctrl.Result{}, Ensure(ctx, r.Client, r.Labels)
}

func shared(object client.Object) bool {
	return slices.Contains(names.SharedClusterRoles(), object.GetName())
}

// one maps every event to the same request.
func one() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "shared"}}}
	})
}
