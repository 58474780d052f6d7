package agent

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wakeup signals a change to one receiver. Signals that were not received yet are
// merged.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

func (w wakeup) signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// source returns a source that requests req for each signal.
func (w wakeup) source(req reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() { // Ends with the controller's context.
			for {
				select {
				case <-ctx.Done():
					return
				case <-w:
					queue.Add(req)
				}
			}
		}()
		return nil
	})
}
