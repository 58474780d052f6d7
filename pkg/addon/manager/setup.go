package manager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
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
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Numbers of ClusterManagementAddOns and of add-ons that are worked on at a time.
const (
	fleetWorkers = 2
	addOnWorkers = 8
)

// Setup adds both controllers to mgr, whose cache has the index of package addonindex.
func Setup(ctx context.Context, mgr ctrl.Manager, clk clock.PassiveClock) error {
	if err := indexDecisions(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index of placement decisions: %w", err)
	}
	c := mgr.GetClient()
	addOns := &AddOn{Client: c, Configs: mgr.GetCache(), Clock: clk}
	if err := setupFleet(mgr, &Fleet{Client: c, Configs: mgr.GetCache(), Clock: clk, AddOns: addOns}); err != nil {
		return err
	}
	return setupAddOn(mgr, addOns)
}

func setupFleet(mgr ctrl.Manager, f *Fleet) error {
	l := lookup{reader: f.Client}
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon.fleet").
		For(&addonv1beta1.ClusterManagementAddOn{}).
		Watches(&clusterv1beta1.PlacementDecision{}, f.gathered(l.fleetsByDecision), builder.WithPredicates(watch.News())).
		Watches(addonconfig.Read(addonconfig.DeploymentConfigs()), handler.EnqueueRequestsFromMapFunc(l.fleetsByConfig), builder.WithPredicates(watch.News())).
		Watches(addonconfig.Read(addonconfig.Templates()), handler.EnqueueRequestsFromMapFunc(l.fleetsByConfig), builder.WithPredicates(watch.News())).
		// An add-on that went may have to be made again, a cluster that was
		// accepted may have to get one, and what became of a configuration
		// may let the next cluster have it.
		Watches(&addonv1beta1.ManagedClusterAddOn{}, installed{EventHandler: handler.EnqueueRequestsFromMapFunc(named), f: f},
			builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(advances)})).
		Watches(&clusterv1.ManagedCluster{}, f.gathered(l.fleets), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && accepts(e.Object) },
			UpdateFunc: func(e event.UpdateEvent) bool { return !accepts(e.ObjectOld) && accepts(e.ObjectNew) },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: fleetWorkers}).
		Complete(f)
}

// The controller collects changes of clusters for settle, plus settleEach for every
// existing add-on, before it reconciles their ClusterManagementAddOn: a reconcile takes
// longer the more add-ons there are, and ten thousand clusters must not cause ten
// thousand of them.
const (
	settle     = 200 * time.Millisecond
	settleEach = 200 * time.Microsecond
)

// gather has a ClusterManagementAddOn looked at a while later.
func (f *Fleet) gather(name string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	size, _ := f.sizes.Load(name)
	n, _ := size.(int)
	for _, request := range watch.Named("", name) {
		queue.AddAfter(request, settle+time.Duration(n)*settleEach)
	}
}

// gathered gathers the ClusterManagementAddOns that an object concerns.
func (f *Fleet) gathered(concerned handler.MapFunc) handler.EventHandler {
	later := func(ctx context.Context, object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range concerned(ctx, object) {
			f.gather(request.Name, queue)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.ObjectOld, queue)
			later(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, queue)
		},
	}
}

// installed maps add-ons to their ClusterManagementAddOns. That one was made is no
// news, unless no placement wants it by now: then the cache shows it too late.
type installed struct {
	handler.EventHandler

	f *Fleet
}

// Create implements handler.EventHandler.
func (h installed) Create(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	switch {
	case e.IsInInitialList:
	case h.f.surplus(ctx, e.Object):
		h.EventHandler.Create(ctx, e, queue)
	default:
		h.f.gather(e.Object.GetName(), queue)
	}
}

// Update implements handler.EventHandler.
func (h installed) Update(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.f.gather(e.ObjectNew.GetName(), queue)
}

// advances reports whether a change of an add-on can change how far a rollout is.
func advances(before, after *addonv1beta1.ManagedClusterAddOn) bool {
	kind := addonv1beta1.ManagedClusterAddOnConditionProgressing
	return !equality.Semantic.DeepEqual(before.Status.ConfigReferences, after.Status.ConfigReferences) ||
		!equality.Semantic.DeepEqual(before.Spec.Configs, after.Spec.Configs) ||
		!equality.Semantic.DeepEqual(apimeta.FindStatusCondition(before.Status.Conditions, kind), apimeta.FindStatusCondition(after.Status.Conditions, kind))
}

func setupAddOn(mgr ctrl.Manager, a *AddOn) error {
	l := lookup{reader: a.Client}
	return ctrl.NewControllerManagedBy(mgr).
		Named("addon.addon").
		For(&addonv1beta1.ManagedClusterAddOn{}, builder.WithPredicates(predicate.Funcs{
			UpdateFunc: watch.Updates(concerns),
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		Watches(&addonv1beta1.ClusterManagementAddOn{}, handler.EnqueueRequestsFromMapFunc(l.addOnsByFleet), builder.WithPredicates(watch.News(), predicate.Funcs{
			UpdateFunc: watch.Updates(configures),
		})).
		Watches(&clusterv1beta1.PlacementDecision{}, l.chosenBy(), builder.WithPredicates(watch.News())).
		Watches(addonconfig.Read(addonconfig.DeploymentConfigs()), handler.EnqueueRequestsFromMapFunc(l.addOnsByConfig), builder.WithPredicates(watch.News())).
		Watches(addonconfig.Read(addonconfig.Templates()), handler.EnqueueRequestsFromMapFunc(l.addOnsByConfig), builder.WithPredicates(watch.News())).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(byWork), builder.WithPredicates(addonwork.Progress(), watch.News())).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(l.addOnsByCluster), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return !maps.Equal(Annotations(e.ObjectOld.GetAnnotations()), Annotations(e.ObjectNew.GetAnnotations()))
			},
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: addOnWorkers}).
		Complete(a)
}

func accepts(object client.Object) bool {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	return ok && cluster.Spec.HubAcceptsClient
}

// concerns reports whether a change of an add-on can change what AddOn writes.
// What agents report does not, nor what AddOn itself wrote: the cache may show
// that piece by piece, which would look as if some were missing.
func concerns(before, after *addonv1beta1.ManagedClusterAddOn) bool {
	return before.Generation != after.Generation || disowned(before, after) ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Status.SupportedConfigs, after.Status.SupportedConfigs) ||
		!equality.Semantic.DeepEqual(before.Status.ConfigReferences, after.Status.ConfigReferences) ||
		altered(before, after, addonv1beta1.ManagedClusterAddOnConditionConfigured) ||
		altered(before, after, addonv1beta1.ManagedClusterAddOnConditionProgressing) ||
		deployed(before, addonv1beta1.ManagedClusterAddOnManifestApplied) != deployed(after, addonv1beta1.ManagedClusterAddOnManifestApplied) ||
		deployed(before, addonv1beta1.ManagedClusterAddOnHostingManifestApplied) != deployed(after, addonv1beta1.ManagedClusterAddOnHostingManifestApplied)
}

// configures reports whether a change of a ClusterManagementAddOn can change the
// desired configurations of its add-ons. The progress of their rollout cannot.
func configures(before, after *addonv1beta1.ClusterManagementAddOn) bool {
	return before.Generation != after.Generation || addonconfig.Managed(before) != addonconfig.Managed(after) ||
		!equality.Semantic.DeepEqual(before.Status.DefaultConfigReferences, after.Status.DefaultConfigReferences) ||
		!maps.EqualFunc(desired(before), desired(after), slices.Equal)
}

// desired returns the configurations that the placements of a ClusterManagementAddOn want.
func desired(cma *addonv1beta1.ClusterManagementAddOn) map[addonv1beta1.PlacementRef][]config {
	want := map[addonv1beta1.PlacementRef][]config{}
	for _, p := range cma.Status.InstallProgressions {
		for _, r := range p.ConfigReferences {
			if r.DesiredConfig != nil {
				want[p.PlacementRef] = append(want[p.PlacementRef],
					config{kind: r.ConfigGroupResource, referent: r.DesiredConfig.ConfigReferent, hash: r.DesiredConfig.SpecHash})
			}
		}
	}
	return want
}

// altered reports whether a condition that was there was changed.
func altered(before, after *addonv1beta1.ManagedClusterAddOn, kind string) bool {
	said := apimeta.FindStatusCondition(before.Status.Conditions, kind)
	return said != nil && !equality.Semantic.DeepEqual(said, apimeta.FindStatusCondition(after.Status.Conditions, kind))
}

// disowned reports whether an owner was removed.
func disowned(before, after client.Object) bool {
	return slices.ContainsFunc(before.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(after.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
	})
}

// lookup maps what changed to whom it concerns, by the cache. A list fails only
// while the cache is stopping; the next start looks at everything.
type lookup struct{ reader client.Reader }

func named(_ context.Context, object client.Object) []reconcile.Request {
	return watch.Named("", object.GetName())
}

func (l lookup) fleets(ctx context.Context, _ client.Object) []reconcile.Request {
	return watch.Listed(ctx, l.reader, &addonv1beta1.ClusterManagementAddOnList{})
}

// fleetsByConfig finds those that have a configuration, or whose add-ons may.
func (l lookup) fleetsByConfig(ctx context.Context, object client.Object) []reconcile.Request {
	wanted := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonconfig.KindOf(object.GetObjectKind()),
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	var list addonv1beta1.ClusterManagementAddOnList
	_ = l.reader.List(ctx, &list, client.UnsafeDisableDeepCopy)
	var requests []reconcile.Request
	for i := range list.Items {
		strategies := placements(&list.Items[i])
		if slices.Contains(list.Items[i].Spec.DefaultConfigs, wanted) || slices.ContainsFunc(strategies, func(s addonv1beta1.PlacementStrategy) bool {
			return slices.Contains(s.Configs, wanted) || inSteps(&s)
		}) {
			requests = append(requests, watch.Named("", list.Items[i].Name)...)
		}
	}
	return requests
}

func byWork(_ context.Context, work client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: addonwork.AddOn(work)}}
}

func (l lookup) fleetsByDecision(ctx context.Context, decision client.Object) []reconcile.Request {
	ref := addonv1beta1.PlacementRef{Namespace: decision.GetNamespace(), Name: decision.GetLabels()[clusterv1beta1.PlacementLabel]}
	var list addonv1beta1.ClusterManagementAddOnList
	_ = l.reader.List(ctx, &list, client.UnsafeDisableDeepCopy)
	var requests []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(placements(&list.Items[i]), func(s addonv1beta1.PlacementStrategy) bool { return s.PlacementRef == ref }) {
			requests = append(requests, watch.Named("", list.Items[i].Name)...)
		}
	}
	return requests
}

func (l lookup) addOnsByFleet(ctx context.Context, cma client.Object) []reconcile.Request {
	return l.addOns(ctx, addonindex.Named(cma.GetName()))
}

// chosenBy maps a decision to the add-ons in the clusters that came or went with a change.
func (l lookup) chosenBy() handler.EventHandler {
	concerned := func(ctx context.Context, is, was client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		clusters := clustersOf(is)
		if was != nil && was.GetLabels()[clusterv1beta1.PlacementLabel] == is.GetLabels()[clusterv1beta1.PlacementLabel] {
			clusters = clusters.Difference(clustersOf(was))
		}
		for _, fleet := range l.fleetsByDecision(ctx, is) {
			for cluster := range clusters {
				queue.Add(watch.Named(cluster, fleet.Name)[0])
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			concerned(ctx, e.Object, nil, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			concerned(ctx, e.ObjectOld, e.ObjectNew, queue)
			concerned(ctx, e.ObjectNew, e.ObjectOld, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			concerned(ctx, e.Object, nil, queue)
		},
	}
}

func (l lookup) addOnsByCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return l.addOns(ctx, client.InNamespace(cluster.GetName()))
}

// addOnsByConfig finds the add-ons that have a configuration themselves. Those
// that inherit it hear of it by their ClusterManagementAddOn's status.
func (l lookup) addOnsByConfig(ctx context.Context, config client.Object) []reconcile.Request {
	var list addonv1beta1.ManagedClusterAddOnList
	_ = l.reader.List(ctx, &list, client.UnsafeDisableDeepCopy)
	var requests []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.Configs, func(c addonv1beta1.AddOnConfig) bool {
			return c.ConfigGroupResource == addonconfig.KindOf(config.GetObjectKind()) && c.Namespace == config.GetNamespace() && c.Name == config.GetName()
		}) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func (l lookup) addOns(ctx context.Context, option client.ListOption) []reconcile.Request {
	return watch.Listed(ctx, l.reader, &addonv1beta1.ManagedClusterAddOnList{}, option)
}

// Annotations returns those of annotations that an add-on inherits from its
// cluster, for caches that hold nothing else.
func Annotations(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		if strings.HasPrefix(key, names.AnnotationAddOnPrefix) {
			kept[key] = value
		}
	}
	return kept
}
