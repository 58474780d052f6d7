package usage

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// field is by what workloads are found in the cache.
const field = "serviceAccount"

// Index knows which ServiceAccounts are used. Its methods can be called at any time
// once the manager's cache has started.
type Index struct {
	cache cache.Cache
}

// NewIndex prepares the cache of a manager, which has CacheObjects.
func NewIndex(ctx context.Context, mgr ctrl.Manager) (*Index, error) {
	for _, w := range workloads() {
		values := func(object client.Object) []string { return []string{account(object)} }
		if err := mgr.GetFieldIndexer().IndexField(ctx, w.object, field, values); err != nil {
			return nil, fmt.Errorf("prepare to find workloads by ServiceAccount: %w", err)
		}
	}
	return &Index{cache: mgr.GetCache()}, nil
}

// CacheObjects limits a cache to what an Index needs.
func CacheObjects() map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{}
	for _, w := range workloads() {
		objects[w.object] = cache.ByObject{Transform: bare}
	}
	return objects
}

// Uses reports whether there is a workload with a ServiceAccount.
func (i *Index) Uses(ctx context.Context, of types.NamespacedName) (bool, error) {
	for _, w := range workloads() {
		err := i.cache.List(ctx, w.list, client.InNamespace(of.Namespace), client.MatchingFields{field: of.Name}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil {
			return false, fmt.Errorf("list workloads of ServiceAccount %s: %w", of, err)
		}
		if apimeta.LenList(w.list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Sources make a request for the ServiceAccount of each workload that is new, or
// that runs as another one than before.
func (i *Index) Sources() []source.Source {
	wake := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: account(object)}}}
	})
	changed := predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return account(e.ObjectOld) != account(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	var sources []source.Source
	for _, w := range workloads() {
		sources = append(sources, source.Kind(i.cache, w.object, wake, changed))
	}
	return sources
}
