// Package watch has the event filters and mappings that the hub's controllers
// share. It is tested with the controllers, in pkg/registration/hub.
package watch

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// ByNamespace maps an object in a cluster namespace to the cluster.
func ByNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return Cluster(object.GetNamespace())
	})
}

// Cluster returns the request for a cluster, none for the empty name.
func Cluster(name string) []reconcile.Request {
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
