package addon

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewReconciler returns a reconciler that only the caller calls, to see when it
// wants to be called again.
func NewReconciler(ctx context.Context, mgr ctrl.Manager, config Config) (*Reconciler, error) {
	r, err := newReconciler(mgr, config)
	if err != nil {
		return nil, err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	context.AfterFunc(ctx, queue.ShutDown)
	return r, r.watches.Start(ctx, queue)
}
