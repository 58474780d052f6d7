package replicaset

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
)

// Owner is the field manager of everything this package writes.
const Owner client.FieldOwner = "ocm.replicaset"

// workers is how many ManifestWorkReplicaSets are worked on at a time.
const workers = 4

// settle is how long what becomes of works is gathered before their set is looked at: a
// thousand works that become available are a few writes of its status.
const settle = time.Second

// Setup adds the controller to mgr, whose cache has the specs of ManifestWorks with the
// label of a ManifestWorkReplicaSet.
func Setup(mgr ctrl.Manager) error {
	r := newReconciler(mgr)
	return named(mgr, "work.replicaset").
		Watches(&workv1.ManifestWork{}, gathered(), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: watch.Updates(progresses),
		})).
		Watches(&clusterv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(r.byDecision), builder.WithPredicates(watch.News())).
		// Its spec may say how many clusters are a step.
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(r.byPlacement), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
		})).
		Complete(r)
}

// SetupRemoval adds to mgr what is done while the feature gate is off: a set that is
// deleted takes its works along, and any other one says that it is not followed.
func SetupRemoval(mgr ctrl.Manager) error {
	return named(mgr, "work.replicaset.removal").Complete(&remover{reconciler: newReconciler(mgr)})
}

func newReconciler(mgr ctrl.Manager) *reconciler {
	return &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("ocm-replicaset")}
}

func named(mgr ctrl.Manager, name string) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&workv1alpha1.ManifestWorkReplicaSet{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(concerns)})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: watch.Patience[reconcile.Request]()})
}

// concerns reports whether a change of a set is one of what it is to be.
func concerns(before, after *workv1alpha1.ManifestWorkReplicaSet) bool {
	return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers)
}

// progresses reports whether a change of a work can change anything for its set.
func progresses(before, after *workv1.ManifestWork) bool {
	return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
}

// queue is the queue of the controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gathered maps works to the sets that their labels name, before a change and after it,
// a while later.
func gathered() handler.EventHandler {
	later := func(work client.Object, q queue) {
		// A namespace has no dot in its name.
		namespace, name, _ := strings.Cut(work.GetLabels()[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey], ".")
		for _, request := range watch.Named(namespace, name) {
			q.AddAfter(request, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { later(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			later(e.ObjectOld, q)
			later(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(e.Object, q) },
	}
}

func (r *reconciler) byDecision(ctx context.Context, decision client.Object) []reconcile.Request {
	return r.choosingBy(ctx, decision.GetNamespace(), decision.GetLabels()[clusterv1beta1.PlacementLabel])
}

func (r *reconciler) byPlacement(ctx context.Context, placement client.Object) []reconcile.Request {
	return r.choosingBy(ctx, placement.GetNamespace(), placement.GetName())
}

// choosingBy returns the sets that refer to a placement.
func (r *reconciler) choosingBy(ctx context.Context, namespace, placement string) []reconcile.Request {
	var list workv1alpha1.ManifestWorkReplicaSetList
	// A cache read fails only while the process stops; the next one lists everything.
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		for _, ref := range list.Items[i].Spec.PlacementRefs {
			if ref.Name == placement {
				requests = append(requests, watch.Named(namespace, list.Items[i].Name)...)
				break
			}
		}
	}
	return requests
}
