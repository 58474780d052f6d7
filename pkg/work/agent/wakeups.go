package agent

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wakeups requests objects of a controller. A request before the controller runs is
// dropped: it begins with all objects.
type wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// source lets a controller receive the requests, in place of any controller before.
func (w *wakeups) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

func (w *wakeups) add(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil { // A queue that is shut down drops requests.
		w.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
}

// workPrefix marks the works among the subscribers of the inventory. The name of an
// AppliedManifestWork has no slash.
const workPrefix = "work/"

func workOf(subscriber string) (work string, ok bool) {
	return strings.CutPrefix(subscriber, workPrefix)
}
