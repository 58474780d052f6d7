package csrapproval

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// indexCluster finds the CSRs of a cluster in the cache.
const indexCluster = "cluster"

// Setup returns a function that adds the controller to the manager of a hub with the
// csr driver. If autoApprove, the feature gate ManagedClusterAutoApproval, is
// enabled, the first requests of users are approved.
func Setup(autoApprove bool, users []string) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), AutoApprove: autoApprove, Users: users,
			Events: mgr.GetEventRecorder("ocm-csrapproval"),
		}
		return r.SetupWithManager(ctx, mgr)
	}
}

// SetupWithManager starts the controller with mgr. It has one worker, so that two
// requests for one name are evaluated one after the other.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	label := func(object client.Object) []string { return []string{object.GetLabels()[names.LabelClusterName]} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &certificatesv1.CertificateSigningRequest{}, indexCluster, label); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.csrapproval").
		For(&certificatesv1.CertificateSigningRequest{}).
		Watches(&certificatesv1.CertificateSigningRequest{}, handler.EnqueueRequestsFromMapFunc(r.conflictingRequests),
			builder.WithPredicates(predicate.Funcs{
				CreateFunc: func(event.CreateEvent) bool { return false },
				UpdateFunc: watch.Updates(func(before, after *certificatesv1.CertificateSigningRequest) bool {
					return !rejected(before) && rejected(after)
				}),
			})).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.pending),
			builder.WithPredicates(predicate.Funcs{
				CreateFunc: func(event.CreateEvent) bool { return false },
				UpdateFunc: watch.Updates(func(before, after *clusterv1.ManagedCluster) bool {
					return !accepted(before) && accepted(after) || alive(before) && !alive(after)
				}),
			})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
}

// conflictingRequests returns the undecided requests for the cluster of a request.
func (r *Reconciler) conflictingRequests(ctx context.Context, request client.Object) []reconcile.Request {
	cluster := request.GetLabels()[names.LabelClusterName]
	if cluster == "" {
		return nil
	}
	return r.undecided(ctx, cluster)
}

// pending returns the undecided requests of a cluster.
func (r *Reconciler) pending(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.undecided(ctx, cluster.GetName())
}

func (r *Reconciler) undecided(ctx context.Context, cluster string) []reconcile.Request {
	var list certificatesv1.CertificateSigningRequestList
	// A cache read fails only while the process stops.
	if err := r.Client.List(ctx, &list, client.MatchingFields{indexCluster: cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if !decided(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
