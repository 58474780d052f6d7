package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Fate is what happens to the resources of the ManifestWorks when their agent is removed.
type Fate string

// The fates. Without one, an agent with works is not removed.
const (
	DeleteResources Fate = "delete"
	OrphanResources Fate = "orphan"
)

// AppliedWork is a ManifestWork of the hub that the agent applied to its cluster.
type AppliedWork struct {
	// Name is the name of the ManifestWork.
	Name string
	// Resources are what it owns on the cluster, as RESOURCE NAMESPACE/NAME.
	Resources []string

	object workv1.AppliedManifestWork
}

// String names the work and what it owns.
func (w AppliedWork) String() string {
	if len(w.Resources) == 0 {
		return w.Name + " (owns nothing)"
	}
	return fmt.Sprintf("%s (owns %s)", w.Name, some(w.Resources))
}

// some names the first few of many.
func some(list []string) string {
	const most = 5
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// WorksRemainError says that ManifestWorks of the hub own resources on the cluster.
type WorksRemainError struct{ Works []AppliedWork }

// Error implements error.
func (e *WorksRemainError) Error() string {
	list := make([]string, len(e.Works))
	for i, work := range e.Works {
		list[i] = work.Name
	}
	return "ManifestWorks of the hub are still on this cluster: " + some(list)
}

// works returns the ManifestWorks that the agent of a Klusterlet applied. Those of other
// agents, which other Klusterlets install, are not among them. Without a Klusterlet they
// are those that no agent is responsible for any more.
func (r *Runner) works(ctx context.Context, own *operatorv1.Klusterlet, all []operatorv1.Klusterlet) ([]AppliedWork, error) {
	var list workv1.AppliedManifestWorkList
	if err := r.Client.List(ctx, &list); err != nil {
		if Gone(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("AppliedManifestWorks: %w", err)
	}
	var works []AppliedWork
	for i := range list.Items {
		ofOther := slices.ContainsFunc(all, func(k operatorv1.Klusterlet) bool {
			return (own == nil || k.UID != own.UID) && list.Items[i].Spec.AgentID == string(k.UID)
		})
		if !ofOther {
			works = append(works, appliedWork(list.Items[i]))
		}
	}
	return works, nil
}

func appliedWork(object workv1.AppliedManifestWork) AppliedWork {
	work := AppliedWork{Name: object.Spec.ManifestWorkName, object: object}
	for _, r := range object.Status.AppliedResources {
		resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
		name := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		work.Resources = append(work.Resources, resource+" "+name)
	}
	return work
}

// settle deletes AppliedManifestWorks after their agent was removed, and has the garbage
// collector delete what they own, or take it out of their ownership. A run that was
// interrupted is continued by the next one, and by the garbage collector, which completes
// what was begun.
func (r *Runner) settle(ctx context.Context, works []AppliedWork, fate Fate) error {
	if len(works) == 0 || fate == "" {
		return nil
	}
	policy, title := metav1.DeletePropagationForeground, "Deleting the resources of the ManifestWorks"
	if fate == OrphanResources {
		policy, title = metav1.DeletePropagationOrphan, "Orphaning the resources of the ManifestWorks"
	}
	return r.Step(ctx, title, func(ctx context.Context, say Say) error {
		for _, work := range works {
			if err := r.deleteApplied(ctx, work.object.Name, policy); err != nil {
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
func (r *Runner) deleteApplied(ctx context.Context, name string, policy metav1.DeletionPropagation) error {
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
func (r *Runner) releaseApplied(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := &workv1.AppliedManifestWork{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, live); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if !controllerutil.RemoveFinalizer(live, names.FinalizerAppliedManifestWork) {
			return nil
		}
		return r.Client.Patch(ctx, live, patch, client.FieldOwner(FieldManager))
	})
}

// awaitSettled waits until the works are gone and own nothing.
func (r *Runner) awaitSettled(ctx context.Context, works []AppliedWork, say Say) error {
	for {
		unmet, err := r.unsettled(ctx, works)
		if err != nil || unmet == nil {
			return err
		}
		say("%s %s", unmet.Object, unmet.Message)
		select {
		case <-ctx.Done():
			return &apply.WaitError{Unmet: []apply.Unmet{*unmet}, Cause: ctx.Err()}
		case <-r.Clock.After(pollInterval):
		}
	}
}

// unsettled returns what remains of the first work that is not settled: a resource that
// it owns, or itself; nil if all are.
func (r *Runner) unsettled(ctx context.Context, works []AppliedWork) (*apply.Unmet, error) {
	for _, work := range works {
		for _, resource := range work.object.Status.AppliedResources {
			unmet, err := r.owned(ctx, resource, work.object.UID)
			if err != nil || unmet != nil {
				return unmet, err
			}
		}
		live := &workv1.AppliedManifestWork{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(&work.object), live)
		if Gone(err) || err == nil && live.UID != work.object.UID {
			continue
		}
		kind := schema.GroupVersion(workv1.GroupVersion).WithKind("AppliedManifestWork")
		return &apply.Unmet{Object: apply.Ref{Kind: kind, Name: work.object.Name}, Message: "is being deleted"}, err
	}
	return nil, nil // Nothing remains.
}

// owned returns a resource that exists and that an AppliedManifestWork owns.
func (r *Runner) owned(ctx context.Context, resource workv1.AppliedManifestResourceMeta, owner types.UID) (*apply.Unmet, error) {
	gvr := schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
	kind, err := r.Client.RESTMapper().KindFor(gvr)
	if err != nil {
		return nil, ignoreGone(err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: resource.Name}, object); err != nil {
		return nil, ignoreGone(err)
	}
	if !slices.ContainsFunc(object.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner }) {
		return nil, nil // It stays for another reason.
	}
	ref := apply.Ref{Kind: kind, Namespace: resource.Namespace, Name: resource.Name}
	return &apply.Unmet{Object: ref, Message: "belongs to the ManifestWork still"}, nil
}

// ignoreGone drops the error about an object or a kind that does not exist.
func ignoreGone(err error) error {
	if Gone(err) {
		return nil
	}
	return err
}
