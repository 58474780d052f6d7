package agent

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// apply brings the objects of the work to what their manifests say, in the order of
// kinds. An error means that it must be tried again soon.
func (p *pass) apply(ctx context.Context) error {
	ordered := make([]manifest.Manifest, len(p.items))
	for i, it := range p.items {
		ordered[i] = it.Manifest
	}
	var errs []error
	for _, m := range manifest.Sort(ordered) {
		it := p.items[m.Ordinal]
		p.applyOne(ctx, it)
		if it.Err == nil { // What is wrong with a manifest itself stays so.
			errs = append(errs, p.requeue.fail(it.err))
		}
	}
	return errors.Join(errs...)
}

// applyOne applies one manifest, unless its object is as it was left.
func (p *pass) applyOne(ctx context.Context, it *item) {
	it.found.ResourceMeta = it.meta
	if it.err != nil {
		return
	}
	object, exists := p.agent.inventory.Object(it.key)
	m := p.mark(it.key)
	if it.err = p.reviewAgain(ctx, it, m); it.err != nil {
		return
	}
	repair := m.desired == it.desired
	switch {
	case m.settled(it.desired, object, exists) && p.agent.inventory.State(it.key.Resource) == inventory.Watched:
	case p.done(it, exists):
		if !p.hidden(ctx, it, m) {
			p.look(ctx, it, m)
		}
	case repair && p.untouchable(it, object):
		m.revision = object.Revision
	case repair && m.repairAt().After(p.now):
		it.waits = true
		p.requeue.retry(m.repairAt().Sub(p.now))
	default:
		p.write(ctx, it, m, object)
	}
}

// write applies one manifest if its executor may.
func (p *pass) write(ctx context.Context, it *item, m *mark, before inventory.Object) {
	if it.err = p.check(ctx, it); it.err != nil {
		return
	}
	p.reviewed(m)
	result, err := p.send(ctx, p.request(it, before.UID != ""))
	p.agent.metrics.applied(err)
	if err != nil {
		p.failed(it, m, before, p.agent.checker.Explain(p.work.Spec.Executor, it.permission(), err))
		return
	}
	if m.desired == it.desired && result.Object.GetResourceVersion() != before.ResourceVersion {
		m.repair(p.now, result.Contests)
		p.agent.metrics.repairs.Inc()
	}
	p.note(ctx, it, m, result.Object)
	m.desired = it.desired
}

// check returns nil if the executor may do with the object what the work says. It asks
// once in a pass.
func (p *pass) check(ctx context.Context, it *item) error {
	if !it.checked {
		it.checked = true
		it.refused = p.agent.checker.Check(ctx, p.work.Spec.Executor, it.permission())
	}
	return it.refused
}

// reviewAgain asks for an executor that was asked for long ago: it may have lost its
// permissions since.
func (p *pass) reviewAgain(ctx context.Context, it *item, m *mark) error {
	left, reviewed := p.nextReview(m)
	if !reviewed {
		return nil
	}
	if left > 0 {
		p.requeue.recheck(left)
		return nil
	}
	if err := p.check(ctx, it); err != nil {
		return err
	}
	p.reviewed(m)
	return nil
}

// reviewed remembers that the executor, if there is one, has its permissions, and has it
// asked for again in time.
func (p *pass) reviewed(m *mark) {
	m.reviewed = p.now
	if p.work.Spec.Executor != nil {
		p.requeue.recheck(p.agent.config.ReviewInterval)
	}
}

// nextReview returns how long the last review of an object is good, and whether there was
// one.
func (p *pass) nextReview(m *mark) (left time.Duration, reviewed bool) {
	if p.work.Spec.Executor == nil || m.reviewed.IsZero() {
		return 0, false
	}
	return m.reviewed.Add(p.agent.config.ReviewInterval).Sub(p.now), true
}

// permission is what the executor is asked for.
func (it *item) permission() executor.Request {
	return executor.Request{Resource: it.key.Resource, Manifest: it.Object, Owned: !it.orphan}
}

// send makes a request as the executor, if there is one.
func (p *pass) send(ctx context.Context, r strategy.Request) (strategy.Result, error) {
	if p.applier == nil {
		objects, err := p.agent.checker.Client(p.work.Spec.Executor, p.agent.applier.Client)
		if err != nil {
			return strategy.Result{}, err
		}
		p.applier = &strategy.Applier{Client: objects}
	}
	return p.applier.Apply(ctx, r)
}

// hidden reports whether the executor may not know what is in the object, which feedback
// reports. It was asked for when the object became as desired, and is from time to time.
func (p *pass) hidden(ctx context.Context, it *item, m *mark) bool {
	return it.refused != nil || m.desired != it.desired && p.check(ctx, it) != nil
}

// untouchable reports whether an object was created as desired and may be as it is now.
func (p *pass) untouchable(it *item, object inventory.Object) bool {
	return it.options.Update.Type == workv1.UpdateStrategyTypeCreateOnly && object.UID != "" &&
		object.OwnedBy(p.applied.UID) == !it.orphan
}

// failed records why a manifest was not applied. An object that is only read and does
// not exist is no failure.
func (p *pass) failed(it *item, m *mark, object inventory.Object, err error) {
	m.desired = 0
	if apierrors.IsNotFound(err) && it.readOnly() {
		p.agent.inventory.Forget(it.key, object.UID)
		it.found.Conditions = []metav1.Condition{status.Available(it.meta, err)}
		return
	}
	it.err = err
}

// look reads an object that is not applied.
func (p *pass) look(ctx context.Context, it *item, m *mark) {
	request := p.request(it, true)
	request.Update.Type = workv1.UpdateStrategyTypeReadOnly
	result, err := p.send(ctx, request)
	if err != nil {
		it.found.Conditions = []metav1.Condition{status.Available(it.meta, err)}
		switch {
		case apierrors.IsNotFound(err) && p.done(it, false):
			it.found.Conditions = []metav1.Condition{status.AvailableOnceFinished()}
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			p.requeue.reject(denialInterval)
		default:
			p.requeue.retry(p.agent.config.StatusSyncInterval)
		}
		return
	}
	p.note(ctx, it, m, result.Object)
	m.desired = it.desired
}

// note remembers and reports an object that a request returned.
func (p *pass) note(ctx context.Context, it *item, m *mark, object *unstructured.Unstructured) {
	seen := p.agent.inventory.Observe(it.key, object)
	m.revision = seen.Revision
	m.version = ""
	if it.read() {
		m.version, m.observed, m.interval = seen.ResourceVersion, p.now, p.interval(it)
	}
	it.found = p.agent.observer.Observe(ctx, status.Observation{
		Meta: it.meta, Object: object, Options: it.options, Generation: p.work.Generation,
	})
	p.explainUnready(ctx, it, m, object)
}

// mark returns what is remembered of an object.
func (p *pass) mark(key inventory.Key) *mark {
	m, ok := p.record.marks[key]
	if !ok {
		m = &mark{}
		p.record.marks[key] = m
	}
	return m
}

// completed reports whether a manifest is complete, and with it what is applied of it.
func (p *pass) completed(it *item) bool {
	return apimeta.IsStatusConditionTrue(p.work.Status.Conditions, workv1.WorkComplete) || p.before.Completed(it.meta)
}

// done reports whether nothing of a manifest is applied any more: it is complete, or its
// object has finished, in this generation of the work, and is gone.
func (p *pass) done(it *item, exists bool) bool {
	return p.completed(it) || !exists && p.before.Finished(it.meta, p.work.Generation)
}

// settledBefore reports whether the manifest was applied before, by this process or
// another.
func (p *pass) settledBefore(it *item) bool {
	if m := p.mark(it.key); m.desired != 0 {
		return m.desired == it.desired
	}
	entry, _ := p.before.Find(it.meta)
	c := apimeta.FindStatusCondition(entry.Conditions, workv1.ManifestApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.work.Generation
}

// owner returns the reference to an AppliedManifestWork. It is no controller's, so that
// objects may have other owners.
func owner(applied *workv1.AppliedManifestWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: schema.GroupVersion(workv1.GroupVersion).String(), Kind: inventory.OwnerKind,
		Name: applied.Name, UID: applied.UID,
	}
}
