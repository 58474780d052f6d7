package agent

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// watchInterval is how often an object is read at most whose feedback is watched.
const watchInterval = time.Second

// reader finds out what is to be reported of each object.
type reader struct{ *scope }

// observe observes every object.
func (r *reader) observe(ctx context.Context) error {
	for _, o := range r.objects {
		if len(o.found.Conditions) == 0 {
			r.observeOne(ctx, o)
		}
		if !o.waits {
			o.found.Conditions = append(o.found.Conditions, status.Remark(status.Applied(o.err, r.work.Generation), r.contested(o)))
		}
	}
	return nil
}

// contested returns what is to be reported about other writers of an object that is
// applied; empty if there is nothing.
func (r *reader) contested(o *object) string {
	if o.err != nil || !o.mapped() {
		return ""
	}
	left := o.contestedFor(r.now)
	if left <= 0 {
		return ""
	}
	r.requeue.retry(left)
	return strategy.Describe(o.contests)
}

// observeOne reports on an object that was not read while applying.
func (r *reader) observeOne(ctx context.Context, o *object) {
	available := func(err error) { o.found.Conditions = []metav1.Condition{status.Available(o.meta, err)} }
	if !o.mapped() {
		available(nil)
		return
	}
	live, exists := o.live()
	switch {
	case !exists && o.waits:
		available(notFound(o.key))
	case r.impersonator.hidden(ctx, o):
		r.requeue.retry(denialInterval)
		o.found.Conditions = r.withheld(o)
	case !exists:
		r.read(ctx, o) // It was not applied, and may have existed before the subscription.
		o.applied = 0
	case r.due(o, live):
		r.read(ctx, o)
	case !o.observable() && !r.history.ruled(o):
		available(nil)
	}
}

// withheld are the conditions of an object that the executor may not know.
func (r *reader) withheld(o *object) []metav1.Condition {
	if _, exists := o.live(); !exists {
		return []metav1.Condition{status.Available(o.meta, notFound(o.key))}
	}
	found := []metav1.Condition{status.Available(o.meta, nil)}
	if o.asked() {
		found = append(found, status.Withheld(o.denied))
	}
	if o.mayBeReady() {
		found = append(found, status.Unread(o.denied, r.work.Generation))
	}
	return found
}

// due reports whether an object must be read for feedback and conditions. If that is too
// soon, the work is looked at again.
func (r *reader) due(o *object, live inventory.Object) bool {
	if !o.observable() {
		return r.record.seen != r.work.Generation && r.history.ruled(o) // What is reported by rules goes.
	}
	at, due := o.lookAt(live.ResourceVersion)
	if !due {
		return false
	}
	if left := at.Sub(r.now); left > 0 {
		r.requeue.recheck(left)
		return false
	}
	return true
}

// read reads an object that is not applied. It returns false, and reports why, if it cannot.
func (r *reader) read(ctx context.Context, o *object) bool {
	request := r.request(o)
	request.Update.Type = workv1.UpdateStrategyTypeReadOnly
	result, err := r.impersonator.send(ctx, request)
	if err != nil {
		o.found.Conditions = []metav1.Condition{status.Available(o.meta, err)}
		switch {
		case apierrors.IsNotFound(err) && r.history.done(o, false):
			o.found.Conditions = []metav1.Condition{status.AvailableOnceFinished()}
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			r.requeue.reject(denialInterval)
		default:
			r.requeue.retry(r.agent.config.StatusSyncInterval)
		}
		return false
	}
	r.note(ctx, o, result.Object)
	return true
}

// note remembers and reports an object that a request returned.
func (r *reader) note(ctx context.Context, o *object, returned *unstructured.Unstructured) {
	seen := r.agent.inventory.Observe(o.key, returned)
	o.revision = seen.Revision
	o.version = ""
	if o.observable() {
		o.version, o.observed, o.interval = seen.ResourceVersion, r.now, r.interval(o)
	}
	o.found = r.agent.observer.Observe(ctx, status.Observation{
		Meta: o.meta, Object: returned, Options: o.options, Generation: r.work.Generation,
	})
	r.explainUnready(ctx, o, returned)
}

// interval is how often the status of an object is read at most. A Job that Kubernetes
// deletes when it has finished is read whenever it changes: later there is nothing to see.
func (r *reader) interval(o *object) time.Duration {
	_, short, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", "ttlSecondsAfterFinished")
	if short && o.key.Resource.GroupResource() == batchv1.Resource("jobs") {
		return 0
	}
	polled := r.agent.config.StatusSyncInterval
	if o.options.Scrape != workv1.FeedbackWatchType {
		r.agent.slots.free(o.key)
		return polled
	}
	if r.agent.slots.take(o.key) {
		return min(polled, watchInterval)
	}
	return polled
}

func notFound(key inventory.Key) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: key.Resource.Group, Resource: key.Resource.Resource}, key.Name)
}
