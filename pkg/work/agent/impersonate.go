package agent

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// impersonator sends the requests for the objects of a work as its executor, if there is one,
// and checks the permissions of the executor first.
type impersonator struct {
	agent   *agent
	work    *hubWork
	requeue *requeue
	now     time.Time
	// applier writes as the executor; nil before the first request.
	applier *strategy.Applier
}

// send applies or reads an object as the executor, if there is one.
func (i *impersonator) send(ctx context.Context, r strategy.Request) (strategy.Result, error) {
	if i.applier == nil {
		objects, err := i.agent.checker.Client(i.work.Spec.Executor, i.agent.applier.Client)
		if err != nil {
			return strategy.Result{}, err
		}
		i.applier = &strategy.Applier{Client: objects}
	}
	return i.applier.Apply(ctx, r)
}

// client returns the client of earlier requests, nil before the first one.
func (i *impersonator) client() dynamic.Interface {
	if i.applier == nil {
		return nil
	}
	return i.applier.Client
}

// explain returns the error of a request with the permission that the executor lacks.
func (i *impersonator) explain(o *object, err error) error {
	return i.agent.checker.Explain(i.work.Spec.Executor, o.permission(), err)
}

// check returns nil if the executor may do with the object what the work says. It asks the
// API server once in a pass.
func (i *impersonator) check(ctx context.Context, o *object) error {
	if !o.checked {
		o.checked = true
		o.denied = i.agent.checker.Check(ctx, i.work.Spec.Executor, o.permission())
	}
	return o.denied
}

// hidden reports whether the executor may not know what is in the object, which feedback
// reports. The executor is checked when the object becomes as desired, and from time to time.
func (i *impersonator) hidden(ctx context.Context, o *object) bool {
	return o.denied != nil || o.applied != o.desired && i.check(ctx, o) != nil
}

// reviewAgain checks an executor whose last check is long ago: it may have lost its
// permissions since.
func (i *impersonator) reviewAgain(ctx context.Context, o *object) error {
	left, reviewed := i.nextReview(o.memory)
	if !reviewed {
		return nil
	}
	if left > 0 {
		i.requeue.recheck(left)
		return nil
	}
	if err := i.check(ctx, o); err != nil {
		return err
	}
	i.reviewed(o.memory)
	return nil
}

// reviewed remembers that the executor, if there is one, has its permissions, and has it
// checked again in time.
func (i *impersonator) reviewed(m *memory) {
	m.reviewed = i.now
	if i.work.Spec.Executor != nil {
		i.requeue.recheck(i.agent.config.ReviewInterval)
	}
}

// nextReview returns how long the last review of an object is valid, and whether there was
// one.
func (i *impersonator) nextReview(m *memory) (left time.Duration, reviewed bool) {
	if i.work.Spec.Executor == nil || m.reviewed.IsZero() {
		return 0, false
	}
	return m.reviewed.Add(i.agent.config.ReviewInterval).Sub(i.now), true
}
