package agent

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// writer applies the manifests whose object is not as the agent left it.
type writer struct {
	*scope

	reader *reader
}

// apply applies the manifests of the work, in the order of
// kinds. The work is reported also after a failure.
func (w *writer) apply(ctx context.Context) error {
	ordered := make([]manifest.Manifest, len(w.objects))
	for i, o := range w.objects {
		ordered[i] = o.Manifest
	}
	var errs []error
	for _, m := range manifest.Sort(ordered) {
		o := w.objects[m.Ordinal]
		w.applyOne(ctx, o)
		if o.Err == nil { // What is wrong with a manifest itself stays so.
			errs = append(errs, w.requeue.fail(o.err))
		}
	}
	w.failures = append(w.failures, errors.Join(errs...))
	return nil
}

// applyOne applies one manifest, unless the object is unchanged.
func (w *writer) applyOne(ctx context.Context, o *object) {
	o.found.ResourceMeta = o.meta
	if o.err != nil {
		return
	}
	live, exists := o.live()
	if o.err = w.impersonator.reviewAgain(ctx, o); o.err != nil {
		return
	}
	repair := o.applied == o.desired
	switch {
	case o.settled(live, exists):
	case w.history.done(o, exists):
		if !w.impersonator.hidden(ctx, o) && w.reader.read(ctx, o) {
			o.applied = o.desired
		}
	case repair && w.untouchable(o, live):
		o.revision = live.Revision
	case repair && o.repairAt().After(w.now):
		o.waits = true
		w.requeue.retry(o.repairAt().Sub(w.now))
	default:
		w.write(ctx, o, live)
	}
}

// untouchable reports whether an object was created as desired and may be as it is now.
func (w *writer) untouchable(o *object, live inventory.Object) bool {
	return o.options.Update.Type == workv1.UpdateStrategyTypeCreateOnly && live.UID != "" &&
		live.OwnedBy(w.applied.UID) == !o.orphan
}

// write applies one manifest if its executor may.
func (w *writer) write(ctx context.Context, o *object, before inventory.Object) {
	if o.err = w.impersonator.check(ctx, o); o.err != nil {
		return
	}
	w.impersonator.reviewed(o.memory)
	request := w.request(o)
	request.Missing = before.UID == "" && o.watched()
	result, err := w.impersonator.send(ctx, request)
	w.agent.metrics.applied(err)
	if err != nil {
		w.fail(o, before, w.impersonator.explain(o, err))
		return
	}
	if o.applied == o.desired && result.Object.GetResourceVersion() != before.ResourceVersion {
		o.repair(w.now, result.Contests)
		w.agent.metrics.repairs.Inc()
	}
	w.reader.note(ctx, o, result.Object)
	o.applied = o.desired
}

// fail records why a manifest was not applied. An object that is only read and does
// not exist is no failure.
func (w *writer) fail(o *object, before inventory.Object, err error) {
	o.applied = 0
	if apierrors.IsNotFound(err) && o.readOnly() {
		w.agent.inventory.Forget(o.key, before.UID)
		o.found.Conditions = []metav1.Condition{status.Available(o.meta, err)}
		return
	}
	o.err = err
}
