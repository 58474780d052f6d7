package tokeninfra

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// workers is how many add-ons are worked on at a time. A worker mostly waits
// for the API server to store something.
const workers = 16

// Selector selects the objects of token infrastructure, for caches.
func Selector() map[string]string { return map[string]string{names.LabelTokenInfrastructure: "true"} }

// Named selects what is labelled with the name of an add-on, for caches: the RoleBindings
// of token infrastructure and of AddOnTemplates.
func Named() selectors.Selector {
	// Only an invalid key is an error.
	requirement, err := selectors.NewRequirement(names.LabelAddOnTokenName, selection.Exists, nil)
	if err != nil {
		return selectors.Nothing()
	}
	return selectors.NewSelector().Add(*requirement)
}

// infrastructure reports whether an object is, or was, labelled as token infrastructure.
func infrastructure() predicate.Predicate {
	labelled := func(object client.Object) bool { return object.GetLabels()[names.LabelTokenInfrastructure] == "true" }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return labelled(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return labelled(e.ObjectOld) || labelled(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return labelled(e.Object) },
	}
}

// SetupWithManager starts the controller with mgr. ctx is the manager's context.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	made, drift := madeFor{EventHandler: handler.EnqueueRequestsFromMapFunc(byLabel), r: r}, builder.WithPredicates(infrastructure(), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return altered(e.ObjectOld, e.ObjectNew) },
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon.tokeninfra").
		For(&addonv1beta1.ManagedClusterAddOn{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: watch.Updates(func(before, after *addonv1beta1.ManagedClusterAddOn) bool {
				return concerns(before, after) || r.misled(ctx, before, after)
			}),
		})).
		WatchesMetadata(&corev1.ServiceAccount{}, made, drift).
		Watches(&rbacv1.Role{}, made, drift).
		Watches(&rbacv1.RoleBinding{}, made, drift).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.byCluster), builder.WithPredicates(predicate.Funcs{
			// At its start, the controller reconciles every add-on anyway.
			CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
			UpdateFunc: func(e event.UpdateEvent) bool { return clusterAccepted(e.ObjectOld) != clusterAccepted(e.ObjectNew) },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// concerns reports whether a change of an add-on can give this controller
// something to do. What the controller itself writes does not.
func concerns(before, after *addonv1beta1.ManagedClusterAddOn) bool {
	return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(kubeClient(before), kubeClient(after)) ||
		certified(before) != certified(after) ||
		spoiled(condition(before), condition(after))
}

// spoiled reports whether a change took away or altered what this controller
// had said. The way from nothing, or from a failure, to success is its own.
func spoiled(before, after *metav1.Condition) bool {
	if before == nil || before.Status != metav1.ConditionTrue {
		return before != nil && after == nil
	}
	return after == nil || after.Status != before.Status || after.Message != before.Message
}

// misled reports whether an add-on got a condition that it should not have. Server-side
// apply overwrites without asking, so a reconciliation that read an add-on before it
// changed may write after another one that read the change.
func (r *Reconciler) misled(ctx context.Context, before, after *addonv1beta1.ManagedClusterAddOn) bool {
	is := condition(after)
	if is == nil || equality.Semantic.DeepEqual(condition(before), is) {
		return false
	}
	v, err := r.decide(ctx, after)
	return err != nil || v.action == remove && (v.condition == nil || v.condition.Reason != is.Reason)
}

func condition(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.Condition {
	return apimeta.FindStatusCondition(addOn.Status.Conditions, names.ConditionTokenInfrastructureReady)
}

// madeFor maps the objects that this controller makes to their add-ons. That
// one was made is no news, unless the add-on should not have it: then the cache
// shows it too late.
type madeFor struct {
	handler.EventHandler

	r *Reconciler
}

// Create implements handler.EventHandler.
func (h madeFor) Create(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if e.IsInInitialList || !h.r.expected(ctx, e.Object) {
		h.EventHandler.Create(ctx, e, queue)
	}
}

// altered reports whether an update changed what this controller keeps.
func altered(before, after client.Object) bool {
	if !maps.Equal(before.GetLabels(), after.GetLabels()) || before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil {
		return true
	}
	switch b := before.(type) {
	case *rbacv1.Role:
		a, ok := after.(*rbacv1.Role)
		return ok && !equality.Semantic.DeepEqual(b.Rules, a.Rules)
	case *rbacv1.RoleBinding:
		a, ok := after.(*rbacv1.RoleBinding)
		return ok && (b.RoleRef != a.RoleRef || !equality.Semantic.DeepEqual(b.Subjects, a.Subjects))
	}
	return false
}

func clusterAccepted(object client.Object) bool {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	return ok && accepted(cluster)
}

// byLabel maps an object to the add-on that its label names.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	return watch.Named(object.GetNamespace(), object.GetLabels()[names.LabelAddOnTokenName])
}

// byCluster maps a cluster to its add-ons.
func (r *Reconciler) byCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return watch.Listed(ctx, r.Client, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(cluster.GetName()))
}
