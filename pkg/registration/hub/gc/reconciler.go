package gc

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	kevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/orphan"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.gc"

const (
	// poll is how often a namespace that is not empty is listed again.
	poll    = 5 * time.Second
	workers = 4
)

// Reconciler empties cluster namespaces.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Enabled is the feature gate ResourceCleanup. If it is disabled, the controller
	// only removes its finalizer.
	Enabled bool
	// Resources are deleted in this order.
	Resources []schema.GroupVersionResource
	// Clock is the hub's.
	Clock clock.PassiveClock
	// Recorder records events.
	Recorder event.Recorder
}

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.gc").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e kevent.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
			UpdateFunc: func(e kevent.UpdateEvent) bool { return e.ObjectNew.GetDeletionTimestamp() != nil },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return r.orphans(ctx, req.Name)
	case err != nil:
		return ctrl.Result{}, err
	case cluster.DeletionTimestamp == nil || !slices.Contains(cluster.Finalizers, names.FinalizerResourceCleanup):
		return ctrl.Result{}, nil
	case !r.Enabled:
		return ctrl.Result{}, r.release(ctx, cluster)
	}
	resource, items, err := r.next(ctx, cluster.Name)
	if err == nil && len(items) > 0 {
		return r.collect(ctx, cluster, resource, items)
	}
	if err != nil {
		return ctrl.Result{}, r.fail(ctx, cluster, err)
	}
	if err := r.deleting(ctx, cluster, metav1.ConditionTrue, clusterv1.ConditionDeletingReasonNoResource, messageNoResource); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Recorder.Normal(cluster, "ResourceCleanupCompleted", "Collect", "All resources in the cluster namespace were deleted")
	return ctrl.Result{}, r.release(ctx, cluster)
}

const messageNoResource = "No cleaned resource in cluster ns."

// next returns the first resource with remaining objects, and these objects.
func (r *Reconciler) next(ctx context.Context, namespace string) (schema.GroupVersionResource, []metav1.PartialObjectMetadata, error) {
	for _, resource := range r.Resources {
		items, err := r.collector().List(ctx, resource, namespace)
		if err != nil || len(items) > 0 {
			return resource, items, err
		}
	}
	return schema.GroupVersionResource{}, nil, nil
}

func (r *Reconciler) collector() orphan.Collector {
	return orphan.Collector{Client: r.Client, Live: r.Live, Owner: Owner}
}

// collect reports the remaining objects and deletes those with the lowest priority.
func (r *Reconciler) collect(ctx context.Context, cluster *clusterv1.ManagedCluster,
	resource schema.GroupVersionResource, items []metav1.PartialObjectMetadata,
) (ctrl.Result, error) {
	pending := 0
	for i := range items {
		if items[i].DeletionTimestamp != nil && len(items[i].Finalizers) > 0 {
			pending++
		}
	}
	// The message, including its spelling, is OCM's.
	// See docs/reference/wire-contract.md#deleting-message.
	message := fmt.Sprintf("The resource %v is remaning, the remaining count is %v, the finalizer pending count is %v",
		resource.Resource, len(items), pending)
	err := r.deleting(ctx, cluster, metav1.ConditionFalse, clusterv1.ConditionDeletingReasonResourceRemaining, message)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if orphan.Released(cluster) {
		return r.force(ctx, cluster, resource)
	}
	if err := r.collector().DeleteFirst(ctx, items); err != nil {
		return ctrl.Result{}, r.fail(ctx, cluster, err)
	}
	return ctrl.Result{RequeueAfter: poll}, nil
}

// force removes the finalizers of an agent that is gone.
func (r *Reconciler) force(ctx context.Context, cluster *clusterv1.ManagedCluster, resource schema.GroupVersionResource) (ctrl.Result, error) {
	released, err := r.collector().Release(ctx, resource, cluster.Name)
	if len(released) > 0 {
		r.Recorder.Warning(cluster, orphan.ReasonForced, orphan.ActionForced(resource), orphan.MessageForced(resource, released))
	}
	// The objects that remain, of this or the next kind, do not wait for an agent.
	return ctrl.Result{RequeueAfter: time.Second}, err
}

// orphans deletes the resources of a cluster whose ManagedCluster was deleted
// without its finalizers, if the namespace has the label of the cluster.
func (r *Reconciler) orphans(ctx context.Context, name string) (ctrl.Result, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil || !r.Enabled {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if namespace.Labels[names.LabelClusterName] != name {
		return ctrl.Result{}, nil
	}
	_, items, err := r.next(ctx, name)
	if err != nil || len(items) == 0 {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: poll}, r.collector().DeleteFirst(ctx, items)
}

func (r *Reconciler) deleting(ctx context.Context, cluster *clusterv1.ManagedCluster, status metav1.ConditionStatus, reason, message string) error {
	_, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), metav1.Condition{
		Type: clusterv1.ManagedClusterConditionDeleting, Status: status, Reason: reason, Message: message,
	})
	return err
}

// fail reports err in the condition and an event, and returns it for a retry.
func (r *Reconciler) fail(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) error {
	if patchErr := r.deleting(ctx, cluster, metav1.ConditionFalse, clusterv1.ConditionDeletingReasonResourceError, err.Error()); patchErr != nil {
		return patchErr
	}
	r.Recorder.Warning(cluster, "ResourceCleanupFail", "Collect", err.Error())
	return err
}

func (r *Reconciler) release(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	return clusterpatch.RemoveFinalizer(ctx, r.Client, Owner, cluster, names.FinalizerResourceCleanup)
}
