package agent

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// bell tells one listener that something may have changed. Rings that nobody
// has heard yet are one ring.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// source makes a controller reconcile req when the bell rings.
func (b bell) source(req reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() { // Ends with the controller's context.
			for {
				select {
				case <-ctx.Done():
					return
				case <-b:
					queue.Add(req)
				}
			}
		}()
		return nil
	})
}
