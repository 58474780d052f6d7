package agent

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// finalize deletes what was applied of a work that is being deleted, and lets the work
// go when that is gone.
func (p *pass) finalize(ctx context.Context) error {
	if !slices.Contains(p.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	if err := p.reportDeleting(ctx, p.heldUp(ctx)); err != nil {
		return err
	}
	if p.applied == nil {
		// The cache may be behind.
		var applied workv1.AppliedManifestWork
		key := client.ObjectKey{Name: names.AppliedManifestWork(p.session.hash, p.work.Name)}
		err := p.agent.managed.live.Get(ctx, key, &applied)
		if apierrors.IsNotFound(err) {
			return p.letGo(ctx)
		}
		if err != nil {
			return err
		}
		p.applied = &applied
	}
	if err := p.takeOverApplied(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !p.applied.DeletionTimestamp.IsZero() {
		return nil // Its end wakes the work.
	}
	if err := p.releaseOrphans(ctx); err != nil {
		return err
	}
	return client.IgnoreNotFound(p.agent.managed.Delete(ctx, p.applied, client.Preconditions{UID: &p.applied.UID}))
}

// letGo removes the finalizer of the work.
func (p *pass) letGo(ctx context.Context) error {
	p.forget(p.work.Name)
	finalizers := slices.DeleteFunc(slices.Clone(p.work.Finalizers), func(f string) bool { return f == names.FinalizerManifestWork })
	return client.IgnoreNotFound(p.patchFinalizers(ctx, finalizers))
}

// heldUp says what holds the deletion of what was applied up, and looks again in time.
func (p *pass) heldUp(ctx context.Context) string {
	if p.applied == nil || p.applied.DeletionTimestamp.IsZero() {
		return ""
	}
	if left := p.applied.DeletionTimestamp.Add(blockedAfter).Sub(p.now); left > 0 {
		p.requeue.recheck(left)
		return ""
	}
	p.requeue.recheck(mostRemoval)
	return p.agent.blocked(ctx, p.applied.Status.AppliedResources)
}

func (p *pass) reportDeleting(ctx context.Context, holdUp string) error {
	wanted := p.work.Status
	wanted.Conditions = slices.Clone(wanted.Conditions)
	deleting := status.Remark(status.Deleting(p.work.Generation), holdUp)
	deleting.LastTransitionTime = metav1.NewTime(p.now)
	if !apimeta.SetStatusCondition(&wanted.Conditions, deleting) {
		return nil
	}
	return p.patchStatus(ctx, wanted)
}

// releaseOrphans removes the owner reference from the objects that stay. The work may
// have been changed to orphan them a moment before it was deleted.
func (p *pass) releaseOrphans(ctx context.Context) error {
	resources := slices.Clone(p.applied.Status.AppliedResources)
	for key, object := range p.agent.inventory.Owned(p.applied.UID) {
		resources = append(resources, resourceOf(key, object.UID))
	}
	var errs []error
	for _, resource := range resources {
		if manifest.Orphaned(p.work, resource.ResourceIdentifier) {
			err := p.agent.inServedVersion(&resource, func() error {
				return p.agent.release(ctx, keyOf(resource), ownerOf(p.applied.UID))
			})
			if !strategy.Gone(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
