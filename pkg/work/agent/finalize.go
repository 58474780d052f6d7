package agent

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// deletion deletes the AppliedManifestWork of a work that is being deleted, and lets the work
// go when that is gone.
type deletion struct{ *scope }

// checkFinalizer ends the pass over a work that the agent does not retain.
func (d *deletion) checkFinalizer(context.Context) error {
	if d.work.retained() {
		return nil
	}
	return errDone
}

// report reports that the work is being deleted, and what holds that up.
func (d *deletion) report(ctx context.Context) error {
	wanted := d.work.Status
	wanted.Conditions = slices.Clone(wanted.Conditions)
	deleting := status.Remark(status.Deleting(d.work.Generation), d.heldUp(ctx))
	deleting.LastTransitionTime = metav1.NewTime(d.now)
	if !apimeta.SetStatusCondition(&wanted.Conditions, deleting) {
		return nil
	}
	return d.work.patchStatus(ctx, wanted)
}

// heldUp says what holds the deletion of what was applied up, and looks again in time.
func (d *deletion) heldUp(ctx context.Context) string {
	if !d.applied.exists() || !d.applied.deleting() {
		return ""
	}
	if left := d.applied.DeletionTimestamp.Add(blockedAfter).Sub(d.now); left > 0 {
		d.requeue.recheck(left)
		return ""
	}
	d.requeue.recheck(mostRemoval)
	return d.agent.remover.blocked(ctx, d.applied.recorded())
}

// find reads the AppliedManifestWork without the cache, which may be behind. If it is gone,
// the hub may delete the work.
func (d *deletion) find(ctx context.Context) error {
	if d.applied.exists() {
		return nil
	}
	if err := d.applied.readFrom(ctx, d.agent.managed.live); err != nil || d.applied.exists() {
		return err
	}
	d.works.forget(d.work.Name)
	if err := d.work.removeFinalizer(ctx); err != nil {
		return err
	}
	return errDone
}

// takeOver makes the AppliedManifestWork this agent's. It ends the pass once its deletion has
// begun: its end wakes the work.
func (d *deletion) takeOver(ctx context.Context) error {
	err := d.applied.takeOver(ctx)
	if apierrors.IsNotFound(err) || err == nil && d.applied.deleting() {
		return errDone
	}
	return err
}

// releaseOrphans removes the owner reference from the objects that stay. The work may
// have been changed to orphan them a moment before it was deleted.
func (d *deletion) releaseOrphans(ctx context.Context) error {
	resources := slices.Clone(d.applied.recorded())
	for key, live := range d.agent.inventory.Owned(d.applied.UID) {
		resources = append(resources, resourceOf(key, live.UID))
	}
	var errs []error
	for _, resource := range resources {
		if manifest.Orphaned(d.work.ManifestWork, resource.ResourceIdentifier) {
			err := d.agent.managed.inServedVersion(&resource, func() error {
				return d.agent.remover.release(ctx, keyOf(resource), ownerOf(d.applied.UID))
			})
			if !strategy.Gone(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// delete has the evictor delete the objects.
func (d *deletion) delete(ctx context.Context) error {
	return client.IgnoreNotFound(d.agent.managed.Delete(ctx, d.applied.AppliedManifestWork, client.Preconditions{UID: &d.applied.UID}))
}
