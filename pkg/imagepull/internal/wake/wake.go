package wake

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Signal wakes a controller.
type Signal struct {
	calls chan event.GenericEvent
}

// New returns a signal.
func New() *Signal { return &Signal{calls: make(chan event.GenericEvent, 1)} }

// Send requests the reconciliation of all objects.
func (s *Signal) Send() {
	select {
	case s.calls <- event.GenericEvent{}:
	default:
	}
}

// Source makes requests for all of a controller's objects.
func (s *Signal) Source(all func(context.Context) []reconcile.Request) source.Source {
	return source.Channel(s.calls, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return all(ctx)
	}))
}
