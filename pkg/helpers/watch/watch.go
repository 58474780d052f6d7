package watch

import (
	"context"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Updates returns a filter for the updates of objects of type T.
func Updates[T client.Object](relevant func(before, after T) bool) func(event.UpdateEvent) bool {
	return func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return ok1 && ok2 && relevant(before, after)
	}
}

// News admits objects that are not part of the first list: the initial reconcile of the
// controller's own objects covers the list.
func News() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// Patience limits how often a failure is tried again that a user can end without an
// event, such as by granting a permission: soon at first, then once a minute.
func Patience[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](100*time.Millisecond, time.Minute)
}

// ByNamespace maps an object in a namespace to the object that the namespace is named
// after.
func ByNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return Named("", object.GetNamespace())
	})
}

// Named returns the request for an object, none for the empty name.
func Named(namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// Listed returns a request for each object that a cache has, which it reads into list.
func Listed(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	// A cache read fails only while the process stops; the next one lists everything.
	if err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return nil
	})
	return requests
}
