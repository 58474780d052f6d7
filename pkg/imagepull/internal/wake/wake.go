package wake

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Bell wakes a controller.
type Bell struct {
	calls chan event.GenericEvent
}

// New returns a bell.
func New() *Bell { return &Bell{calls: make(chan event.GenericEvent, 1)} }

// Ring has the controller look at everything.
func (b *Bell) Ring() {
	select {
	case b.calls <- event.GenericEvent{}:
	default:
	}
}

// Source makes requests for all of a controller's objects.
func (b *Bell) Source(all func(context.Context) []reconcile.Request) source.Source {
	return source.Channel(b.calls, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return all(ctx)
	}))
}
