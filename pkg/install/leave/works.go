package leave

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// settle deletes AppliedManifestWorks after their agent was removed, and has the garbage
// collector delete what they own, or take it out of their ownership. A run that was
// interrupted is continued by the next one, and by the garbage collector, which completes
// what was begun.
func (r Runner) settle(ctx context.Context, works []agent.AppliedWork, fate install.Fate) error {
	if len(works) == 0 || fate == "" {
		return nil
	}
	policy, title := metav1.DeletePropagationForeground, "Deleting the resources of the ManifestWorks"
	if fate == install.OrphanResources {
		policy, title = metav1.DeletePropagationOrphan, "Orphaning the resources of the ManifestWorks"
	}
	return r.Step(ctx, title, func(ctx context.Context, say install.Say) error {
		for _, work := range works {
			if err := r.deleteApplied(ctx, work.Object.Name, policy); err != nil {
				return fmt.Errorf("ManifestWork %s: %w", work.Name, err)
			}
		}
		if r.DryRun {
			return nil
		}
		return r.awaitSettled(ctx, works, say)
	})
}

// deleteApplied deletes an AppliedManifestWork for the garbage collector. The finalizer
// of the agent goes second: an object that is gone has no propagation policy.
func (r Runner) deleteApplied(ctx context.Context, name string, policy metav1.DeletionPropagation) error {
	live := &workv1.AppliedManifestWork{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID}, client.PropagationPolicy(policy))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.releaseApplied(ctx, name))
}

// releaseApplied takes the finalizer of the agent, which no longer runs, from an
// AppliedManifestWork. The garbage collector changes finalizers at the same time.
func (r Runner) releaseApplied(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &workv1.AppliedManifestWork{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, live); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if !controllerutil.RemoveFinalizer(live, names.FinalizerAppliedManifestWork) {
			return nil
		}
		return r.Client.Patch(ctx, live, patch, client.FieldOwner(install.FieldManager))
	})
}

// awaitSettled waits until the works are gone and own nothing.
func (r Runner) awaitSettled(ctx context.Context, works []agent.AppliedWork, say install.Say) error {
	for {
		unmet, err := r.unsettled(ctx, works)
		if err != nil || unmet == nil {
			return err
		}
		say("%s %s", unmet.Object, unmet.Message)
		if !pause.For(ctx, r.Clock, install.PollInterval) {
			return &apply.WaitError{Unmet: []apply.Unmet{*unmet}, Cause: ctx.Err()}
		}
	}
}

// unsettled returns what remains of the first work that is not settled: a resource that
// it owns, or itself; nil if all are.
func (r Runner) unsettled(ctx context.Context, works []agent.AppliedWork) (*apply.Unmet, error) {
	for _, work := range works {
		for _, resource := range work.Object.Status.AppliedResources {
			unmet, err := r.owned(ctx, resource, work.Object.UID)
			if err != nil || unmet != nil {
				return unmet, err
			}
		}
		live := &workv1.AppliedManifestWork{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(&work.Object), live)
		if lookup.Gone(err) || err == nil && live.UID != work.Object.UID {
			continue
		}
		kind := schema.GroupVersion(workv1.GroupVersion).WithKind("AppliedManifestWork")
		return &apply.Unmet{Object: apply.Ref{Kind: kind, Name: work.Object.Name}, Message: "is being deleted"}, err
	}
	return nil, nil // Nothing remains.
}

// owned returns a resource that exists and that an AppliedManifestWork owns.
func (r Runner) owned(ctx context.Context, resource workv1.AppliedManifestResourceMeta, owner types.UID) (*apply.Unmet, error) {
	gvr := schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
	kind, err := r.Client.RESTMapper().KindFor(gvr)
	if err != nil {
		return nil, lookup.IgnoreGone(err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: resource.Name}, object); err != nil {
		return nil, lookup.IgnoreGone(err)
	}
	if !slices.ContainsFunc(object.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner }) {
		return nil, nil // It stays for another reason.
	}
	ref := apply.Ref{Kind: kind, Namespace: resource.Namespace, Name: resource.Name}
	return &apply.Unmet{Object: ref, Message: "belongs to the ManifestWork still"}, nil
}
