package token

import (
	"container/heap"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
)

// rank is the place of a Secret in the queue.
type rank struct {
	// idle says that no token is needed, so that the Secret costs nothing.
	idle    bool
	urgency credential.Urgency
	// expires is when the present token does.
	expires time.Time
}

// before reports whether r precedes o: free work is first, then urgent work, then the
// earliest expiry.
func (r rank) before(o rank) bool {
	switch {
	case r.idle != o.idle:
		return r.idle
	case r.urgency != o.urgency:
		return r.urgency > o.urgency
	default:
		return r.expires.Before(o.expires)
	}
}

// newQueue returns the queue of a controller whose requests are ordered by rank.
func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], order func(reconcile.Request) rank) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
				Name: name, Queue: newOrdered(order),
			}),
		}),
	})
}

// ordered implements workqueue.Queue, whose methods are called one at a time.
type ordered struct {
	rank  func(reconcile.Request) rank
	items entries
}

func newOrdered(order func(reconcile.Request) rank) *ordered {
	return &ordered{rank: order, items: entries{index: map[reconcile.Request]int{}}}
}

// Touch implements workqueue.Queue: what is added again may have become urgent.
func (q *ordered) Touch(item reconcile.Request) {
	if i, ok := q.items.index[item]; ok {
		q.items.list[i].rank = q.rank(item)
		heap.Fix(&q.items, i)
	}
}

// Push implements workqueue.Queue.
func (q *ordered) Push(item reconcile.Request) {
	heap.Push(&q.items, entry{request: item, rank: q.rank(item)})
}

// Len implements workqueue.Queue.
func (q *ordered) Len() int { return q.items.Len() }

// Pop implements workqueue.Queue.
func (q *ordered) Pop() reconcile.Request {
	first := q.items.list[0].request
	heap.Pop(&q.items)
	return first
}

type entry struct {
	request reconcile.Request
	rank    rank
}

// entries implements heap.Interface and knows where each request is.
type entries struct {
	list  []entry
	index map[reconcile.Request]int
}

// Len implements heap.Interface.
func (e *entries) Len() int { return len(e.list) }

// Less implements heap.Interface.
func (e *entries) Less(i, j int) bool { return e.list[i].rank.before(e.list[j].rank) }

// Swap implements heap.Interface.
func (e *entries) Swap(i, j int) {
	e.list[i], e.list[j] = e.list[j], e.list[i]
	e.index[e.list[i].request], e.index[e.list[j].request] = i, j
}

// Push implements heap.Interface.
func (e *entries) Push(x any) {
	added, ok := x.(entry)
	if !ok {
		return
	}
	e.index[added.request] = len(e.list)
	e.list = append(e.list, added)
}

// Pop implements heap.Interface.
func (e *entries) Pop() any {
	last := len(e.list) - 1
	removed := e.list[last]
	delete(e.index, removed.request)
	e.list = e.list[:last]
	return removed
}
