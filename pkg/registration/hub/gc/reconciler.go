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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/leftover"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.gc"

const (
	// poll is how often a namespace that is not empty is looked at again.
	poll    = 5 * time.Second
	workers = 4
)

// Reconciler empties cluster namespaces.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Enabled is the feature gate ResourceCleanup. When it is off, clusters are
	// only let go.
	Enabled bool
	// Resources are what is deleted, in this order.
	Resources []schema.GroupVersionResource
	// Clock is the hub's.
	Clock clock.PassiveClock
	// Recorder tells users.
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
	return clusterpatch.Settled(r.reconcile(ctx, req))
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
	r.Recorder.Normal(cluster, "ResourceCleanupCompleted", "Collect", "Nothing of the cluster is left in its namespace")
	return ctrl.Result{}, r.release(ctx, cluster)
}

const messageNoResource = "No cleaned resource in cluster ns."

// next returns what is left of the first resource of which anything is left.
func (r *Reconciler) next(ctx context.Context, namespace string) (schema.GroupVersionResource, []metav1.PartialObjectMetadata, error) {
	for _, resource := range r.Resources {
		items, err := r.hub().List(ctx, resource, namespace)
		if err != nil || len(items) > 0 {
			return resource, items, err
		}
	}
	return schema.GroupVersionResource{}, nil, nil
}

func (r *Reconciler) hub() leftover.Hub {
	return leftover.Hub{Client: r.Client, Live: r.Live, Owner: Owner}
}

// collect says what is waited for and deletes what is due.
func (r *Reconciler) collect(ctx context.Context, cluster *clusterv1.ManagedCluster,
	resource schema.GroupVersionResource, items []metav1.PartialObjectMetadata,
) (ctrl.Result, error) {
	pending := 0
	for i := range items {
		if items[i].DeletionTimestamp != nil && len(items[i].Finalizers) > 0 {
			pending++
		}
	}
	// See docs/reference/wire-contract.md#deleting-message.
	message := fmt.Sprintf("The resource %v is remaning, the remaining count is %v, the finalizer pending count is %v",
		resource.Resource, len(items), pending)
	err := r.deleting(ctx, cluster, metav1.ConditionFalse, clusterv1.ConditionDeletingReasonResourceRemaining, message)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if leftover.Released(cluster) {
		return r.force(ctx, cluster, resource)
	}
	if err := r.hub().DeleteFirst(ctx, items); err != nil {
		return ctrl.Result{}, r.fail(ctx, cluster, err)
	}
	return ctrl.Result{RequeueAfter: poll}, nil
}

// force lets go what waits for an agent that is gone.
func (r *Reconciler) force(ctx context.Context, cluster *clusterv1.ManagedCluster, resource schema.GroupVersionResource) (ctrl.Result, error) {
	released, err := r.hub().GiveUp(ctx, resource, cluster.Name)
	if len(released) > 0 {
		r.Recorder.Warning(cluster, leftover.ReasonForced, leftover.ActionForced(resource), leftover.MessageForced(resource, released))
	}
	// What is left, of this or the next kind, does not wait for an agent: look again at once.
	return ctrl.Result{RequeueAfter: time.Second}, err
}

// orphans empties the namespace of a cluster whose ManagedCluster is gone,
// because somebody took its finalizers away, if it is a cluster's namespace.
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
	return ctrl.Result{RequeueAfter: poll}, r.hub().DeleteFirst(ctx, items)
}

func (r *Reconciler) deleting(ctx context.Context, cluster *clusterv1.ManagedCluster, status metav1.ConditionStatus, reason, message string) error {
	_, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), metav1.Condition{
		Type: clusterv1.ManagedClusterConditionDeleting, Status: status, Reason: reason, Message: message,
	})
	return err
}

// fail tells the user about err and returns it, so that it is tried again.
func (r *Reconciler) fail(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) error {
	if patchErr := r.deleting(ctx, cluster, metav1.ConditionFalse, clusterv1.ConditionDeletingReasonResourceError, err.Error()); patchErr != nil {
		return patchErr
	}
	r.Recorder.Warning(cluster, "ResourceCleanupFail", "Collect", err.Error())
	return err
}

func (r *Reconciler) release(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	kept := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == names.FinalizerResourceCleanup })
	return client.IgnoreNotFound(clusterpatch.Finalizers(ctx, r.Client, Owner, cluster, kept))
}
