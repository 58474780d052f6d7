package grant

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

const (
	// workers is how many clusters are reconciled at a time. A worker mostly waits
	// for the external service.
	workers = 8
	// Retries start after firstRetry and back off to lastRetry.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// recordCache is the cache of the records.
type recordCache struct{ cache.Cache }

// GetCache lets the manager start the cache before the controllers.
func (c recordCache) GetCache() cache.Cache { return c.Cache }

// indexConflict finds the clusters that wait for an identifier.
const indexConflict = "identifier-conflict"

// SetupWithManager starts the controller with mgr.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	records, err := r.cache(mgr)
	if err == nil {
		err = labelindex.Add(ctx, records, &corev1.ConfigMap{}, names.LabelClusterName)
	}
	if err != nil {
		return fmt.Errorf("cache of the records of grants: %w", err)
	}
	r.records = store{Reader: records, indexed: true}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.ManagedCluster{}, indexConflict, conflicts); err != nil {
		return fmt.Errorf("index of the clusters that wait for an identifier: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.grant").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return r.relevant(e.Object) },
			UpdateFunc: watch.Updates(r.changed),
			DeleteFunc: func(e event.DeleteEvent) bool { return r.relevant(e.Object) },
		})).
		WatchesRawSource(source.Kind[client.Object](records, &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.affected),
			predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return e.IsInInitialList }})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

func (r *Reconciler) cache(mgr ctrl.Manager) (cache.Cache, error) {
	selector, err := labels.Parse(names.LabelGrant)
	if err != nil {
		return nil, err
	}
	records, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{r.Namespace: {LabelSelector: selector}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return records, mgr.Add(recordCache{records})
}

// relevant reports whether a cluster has or needs a grant. Most do not.
func (r *Reconciler) relevant(object client.Object) bool {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return false
	}
	if slices.Contains(cluster.Finalizers, names.FinalizerGrants) || condition(cluster) != nil {
		return true
	}
	_, plan, err := driver.Plan(r.Drivers, cluster)
	return plan != nil || err != nil
}

// changed reports whether a change of a ManagedCluster requires a reconciliation.
// Writes of this controller and reports of agents do not.
func (r *Reconciler) changed(before, after *clusterv1.ManagedCluster) bool {
	if !r.relevant(before) && !r.relevant(after) {
		return false
	}
	return before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		accepted(before) != accepted(after) ||
		before.Annotations[names.AnnotationAbandonGrants] != after.Annotations[names.AnnotationAbandonGrants] ||
		!names.SameValues(before.Annotations, after.Annotations, r.IdentityAnnotations) ||
		slices.ContainsFunc(before.Finalizers, func(f string) bool { return !slices.Contains(after.Finalizers, f) }) ||
		condition(before) != nil && condition(after) == nil
}

// conflicts is "true" for a cluster that waits for an identifier of another one.
func conflicts(object client.Object) []string {
	if cluster, ok := object.(*clusterv1.ManagedCluster); ok {
		if c := condition(cluster); c != nil && c.Reason == names.ReasonIdentifierConflict {
			return []string{"true"}
		}
	}
	return nil
}

// affected returns the cluster of a changed record and the clusters that wait for an
// identifier.
func (r *Reconciler) affected(ctx context.Context, object client.Object) []reconcile.Request {
	waiting := watch.Listed(ctx, r.Client, &clusterv1.ManagedClusterList{}, client.MatchingFields{indexConflict: "true"})
	return append(watch.Named("", object.GetLabels()[names.LabelClusterName]), waiting...)
}
