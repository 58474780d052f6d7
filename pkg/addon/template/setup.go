package template

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// workers is how many add-ons are worked on at a time.
const workers = 8

// SetupWithManager starts the controller with mgr. ctx is the manager's context.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := labelindex.Add(ctx, mgr.GetFieldIndexer(), &rbacv1.RoleBinding{}, names.LabelAddOnCluster); err != nil {
		return err
	}
	byConfig := handler.EnqueueRequestsFromMapFunc(r.byConfig)
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon.template").
		For(&addonv1beta1.ManagedClusterAddOn{}).
		Watches(&addonv1beta1.ClusterManagementAddOn{}, handler.EnqueueRequestsFromMapFunc(r.byFleet), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: watch.Updates(func(before, after *addonv1beta1.ClusterManagementAddOn) bool {
				return addonconfig.Templated(before) != addonconfig.Templated(after) || addonconfig.Managed(before) != addonconfig.Managed(after)
			}),
		})).
		Watches(addonconfig.Read(addonconfig.Templates()), byConfig, builder.WithPredicates(watch.News())).
		Watches(addonconfig.Read(addonconfig.DeploymentConfigs()), byConfig, builder.WithPredicates(watch.News())).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, work client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: addonwork.AddOn(work)}}
		}), builder.WithPredicates(watch.News(), predicate.Funcs{UpdateFunc: watch.Updates(alters)})).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, binding client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: bound(binding)}}
		}), builder.WithPredicates(predicate.NewPredicateFuncs(ours))).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.byCluster), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return relocates(e.ObjectOld, e.ObjectNew) },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: watch.Patience[reconcile.Request]()}).
		Complete(r)
}

// alters reports whether a change of a work matters to its add-on.
func alters(before, after *workv1.ManifestWork) bool {
	return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		!equality.Semantic.DeepEqual(before.Status, after.Status)
}

// ours reports whether a RoleBinding was made because of a template.
func ours(binding client.Object) bool {
	_, template := binding.GetLabels()[names.LabelAddOnTemplate]
	return template && binding.GetLabels()[names.LabelAddOnCluster] != ""
}

// relocates reports whether a change of a cluster matters to its add-ons.
func relocates(before, after client.Object) bool {
	b, ok1 := before.(*clusterv1.ManagedCluster)
	a, ok2 := after.(*clusterv1.ManagedCluster)
	key := clusterv1.ClusterImageRegistriesAnnotationKey
	return ok1 && ok2 && (b.Annotations[key] != a.Annotations[key] || b.Spec.HubAcceptsClient != a.Spec.HubAcceptsClient || heard(b) != heard(a))
}

func (r *Reconciler) byCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return watch.Listed(ctx, r.Client, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(cluster.GetName()))
}

// byFleet finds the add-ons of a ClusterManagementAddOn.
func (r *Reconciler) byFleet(ctx context.Context, cma client.Object) []reconcile.Request {
	return r.addOns(ctx, func(addOn *addonv1beta1.ManagedClusterAddOn) bool { return addOn.Name == cma.GetName() })
}

// byConfig finds the add-ons that have a configuration.
func (r *Reconciler) byConfig(ctx context.Context, config client.Object) []reconcile.Request {
	referent := addonv1beta1.ConfigReferent{Namespace: config.GetNamespace(), Name: config.GetName()}
	kind := addonconfig.KindOf(config.GetObjectKind())
	return r.addOns(ctx, func(addOn *addonv1beta1.ManagedClusterAddOn) bool {
		return slices.ContainsFunc(addOn.Status.ConfigReferences, func(c addonv1beta1.ConfigReference) bool {
			return c.ConfigGroupResource == kind && c.DesiredConfig != nil && c.DesiredConfig.ConfigReferent == referent
		})
	})
}

func (r *Reconciler) addOns(ctx context.Context, concerned func(*addonv1beta1.ManagedClusterAddOn) bool) []reconcile.Request {
	var list addonv1beta1.ManagedClusterAddOnList
	// A cache read fails only while the process stops.
	if r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if concerned(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
