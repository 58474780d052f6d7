package acceptance

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
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

// workers is how many clusters are reconciled at a time. A worker mostly waits for
// the API server.
const workers = 16

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	rights := granted{EventHandler: byLabel(), r: r}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.acceptance").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(r.relevant)})).
		WatchesMetadata(&corev1.Namespace{}, byLabel(), builder.WithPredicates(namespaces())).
		Watches(&rbacv1.ClusterRole{}, rights).
		Watches(&rbacv1.ClusterRoleBinding{}, rights).
		Watches(&rbacv1.RoleBinding{}, rights).
		Watches(&certificatesv1.CertificateSigningRequest{}, byLabel(), builder.WithPredicates(approvals())).
		Watches(&coordinationv1.Lease{}, watch.ByNamespace(), builder.WithPredicates(drift(relabelled))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// relevant reports whether a change of a ManagedCluster requires a reconciliation.
// Writes of this controller and reports of agents do not.
func (r *Reconciler) relevant(before, after *clusterv1.ManagedCluster) bool {
	switch {
	case before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient,
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero(),
		before.Annotations[names.AnnotationForceDetach] != after.Annotations[names.AnnotationForceDetach],
		before.Annotations[names.AnnotationAutoAccepted] != after.Annotations[names.AnnotationAutoAccepted],
		!names.SameValues(before.Annotations, after.Annotations, r.IdentityAnnotations),
		lost(before.Finalizers, after.Finalizers):
		return true
	}
	return overwritten(before, after, clusterv1.ManagedClusterConditionHubAccepted) ||
		overwritten(before, after, names.ConditionHubApprovedJoin)
}

// overwritten reports whether another writer changed a condition of this controller
// to a wrong value.
func overwritten(before, after *clusterv1.ManagedCluster, kind string) bool {
	condition := apimeta.FindStatusCondition(after.Status.Conditions, kind)
	if condition == nil {
		return apimeta.FindStatusCondition(before.Status.Conditions, kind) != nil
	}
	return after.Spec.HubAcceptsClient != (condition.Status == metav1.ConditionTrue) && condition.Reason != names.ReasonHubError
}

func lost(before, after []string) bool {
	return slices.ContainsFunc(before, func(f string) bool { return !slices.Contains(after, f) })
}

// drift passes changes of others to the objects of this controller: deletions and
// the updates that matter. Creations pass only from the initial list, because those
// objects may belong to a cluster that is gone.
func drift(matters func(event.UpdateEvent) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return e.IsInInitialList },
		UpdateFunc:  matters,
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// namespaces passes created namespaces as well: an existing namespace appears in the
// cache when it gets the label.
func namespaces() predicate.Predicate {
	funcs := drift(relabelled)
	funcs.CreateFunc = func(event.CreateEvent) bool { return true }
	return funcs
}

// approvals passes CSRs that were approved.
func approvals() predicate.Predicate {
	approved := func(object client.Object) bool {
		request, ok := object.(*certificatesv1.CertificateSigningRequest)
		if !ok {
			return false
		}
		_, approved := record.Approved(request)
		return approved
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return approved(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return approved(e.ObjectNew) && !approved(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// relabelled reports whether the cluster label changed, the only field of namespaces
// and leases that this controller repairs.
func relabelled(e event.UpdateEvent) bool {
	return e.ObjectOld.GetLabels()[names.LabelClusterName] != e.ObjectNew.GetLabels()[names.LabelClusterName]
}

// byLabel maps an object to the cluster that its label names. The label of shared
// objects is empty.
func byLabel() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return watch.Named("", object.GetLabels()[names.LabelClusterName])
	})
}

// granted maps roles and bindings to their cluster. Creations pass only if the
// cluster is gone, or from the initial list, whose objects may belong to a cluster
// that is gone.
type granted struct {
	handler.EventHandler

	r *Reconciler
}

// Create implements handler.EventHandler.
func (h granted) Create(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	cluster := client.ObjectKey{Name: e.Object.GetLabels()[names.LabelClusterName]}
	if e.IsInInitialList || apierrors.IsNotFound(h.r.Client.Get(ctx, cluster, &clusterv1.ManagedCluster{})) {
		h.EventHandler.Create(ctx, e, queue)
	}
}
