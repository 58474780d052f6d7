package agent

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// watchInterval is how often an object is read at most whose feedback is watched.
const watchInterval = time.Second

// observe finds out what is to be reported of each manifest.
func (p *pass) observe(ctx context.Context) {
	for _, it := range p.items {
		if len(it.found.Conditions) == 0 {
			p.observeOne(ctx, it)
		}
		if !it.waits {
			it.found.Conditions = append(it.found.Conditions, status.Remark(status.Applied(it.err, p.work.Generation), p.contested(it)))
		}
	}
}

// contested returns what is to be reported about other writers of an object that is
// applied; empty if there is nothing.
func (p *pass) contested(it *item) string {
	if it.err != nil || !it.mapped() {
		return ""
	}
	m := p.mark(it.key)
	left := m.contestedFor(p.now)
	if left <= 0 {
		return ""
	}
	p.requeue.retry(left)
	return strategy.Describe(m.contests)
}

// observeOne reports on an object that was not read while applying.
func (p *pass) observeOne(ctx context.Context, it *item) {
	available := func(err error) { it.found.Conditions = []metav1.Condition{status.Available(it.meta, err)} }
	if !it.mapped() {
		available(nil)
		return
	}
	object, exists := p.agent.inventory.Object(it.key)
	m := p.mark(it.key)
	switch {
	case !exists && it.waits:
		available(notFound(it.key))
	case p.hidden(ctx, it, m):
		p.requeue.retry(denialInterval)
		it.found.Conditions = p.withheld(it)
	case !exists:
		p.look(ctx, it, m) // It was not applied, and may have existed before the subscription.
		m.desired = 0
	case p.due(it, m, object):
		desired := m.desired
		p.look(ctx, it, m)
		m.desired = desired
	case !it.read() && !p.ruled(it):
		available(nil)
	}
}

// withheld are the conditions of an object that the executor may not know.
func (p *pass) withheld(it *item) []metav1.Condition {
	if _, exists := p.agent.inventory.Object(it.key); !exists {
		return []metav1.Condition{status.Available(it.meta, notFound(it.key))}
	}
	found := []metav1.Condition{status.Available(it.meta, nil)}
	if it.asked() {
		found = append(found, status.Withheld(it.refused))
	}
	if it.mayBeReady() {
		found = append(found, status.Unread(it.refused, p.work.Generation))
	}
	return found
}

// due reports whether an object must be read for feedback and conditions. If that is too
// soon, the work is looked at again.
func (p *pass) due(it *item, m *mark, object inventory.Object) bool {
	if !it.read() {
		return p.record.seen != p.work.Generation && p.ruled(it) // What is reported by rules goes.
	}
	at, due := m.lookAt(object.ResourceVersion)
	if !due {
		return false
	}
	if left := at.Sub(p.now); left > 0 {
		p.requeue.recheck(left)
		return false
	}
	return true
}

// interval is how often the status of an object is read at most. A Job that Kubernetes
// deletes when it has finished is read whenever it changes: later there is nothing to see.
func (p *pass) interval(it *item) time.Duration {
	_, short, _ := unstructured.NestedFieldNoCopy(it.Object.Object, "spec", "ttlSecondsAfterFinished")
	if short && it.key.Resource.GroupResource() == batchv1.Resource("jobs") {
		return 0
	}
	polled := p.agent.config.StatusSyncInterval
	if it.options.Scrape != workv1.FeedbackWatchType {
		p.agent.slots.free(it.key)
		return polled
	}
	if p.agent.slots.take(it.key) {
		return min(polled, watchInterval)
	}
	return polled
}

// ruled reports whether rules have set something in what is reported of a manifest.
func (p *pass) ruled(it *item) bool {
	entry, _ := p.before.Find(it.meta)
	return len(entry.StatusFeedbacks.Values) > 0 || slices.ContainsFunc(entry.Conditions, status.SetByRule)
}

func notFound(key inventory.Key) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: key.Resource.Group, Resource: key.Resource.Resource}, key.Name)
}

// report writes the status of the work, if it changed.
func (p *pass) report(ctx context.Context) error {
	found := make([]workv1.ManifestCondition, len(p.items))
	failing := 0
	for i, it := range p.items {
		found[i] = it.found
		if it.err != nil {
			failing++
		}
	}
	p.agent.metrics.report(p.work.Name, failing)
	before, after := p.work.Status.Conditions, p.work.Status
	status.Update(&after, p.work.Generation, found, metav1.NewTime(p.now))
	if applied := apimeta.FindStatusCondition(after.Conditions, workv1.WorkApplied); applied != nil {
		*applied = status.Remark(*applied, p.record.holdUp.text)
	}
	if err := p.patchStatus(ctx, after); err != nil {
		return err
	}
	p.announce(ctx, before, after.Conditions)
	return nil
}

func (p *pass) patchStatus(ctx context.Context, wanted workv1.ManifestWorkStatus) error {
	if apiequality.Semantic.DeepEqual(p.work.Status, wanted) {
		return nil
	}
	before, after := p.skeleton(), p.skeleton()
	before.Status = p.work.Status
	wanted.DeepCopyInto(&after.Status) // The response is decoded into it.
	err := p.hub.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return err
	}
	p.wrote(after)
	return nil
}
