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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/record"
)

// Setup returns a function that adds the controller to the manager of a hub with the
// csr driver. If autoApprove, the feature gate ManagedClusterAutoApproval, is
// enabled, the first requests of users are approved.
func Setup(autoApprove bool, users []string) func(context.Context, ctrl.Manager) error {
	return func(_ context.Context, mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), AutoApprove: autoApprove, Users: users,
			Events: mgr.GetEventRecorder("ocm-csrapproval"),
		}
		return r.SetupWithManager(mgr)
	}
}

// SetupWithManager starts the controller with mgr, whose cache must have the index of
// package record. It has one worker, so that two requests for one name are evaluated one
// after the other.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
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
	// A cache read fails only while the process stops.
	found, err := record.Cached(r.Client).Requests(ctx, cluster)
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range found {
		if !decided(&found[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
		}
	}
	return requests
}
