package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// SetExistsError says that there is a ManifestWorkReplicaSet of that name with other
// manifests or another placement.
type SetExistsError struct{ Set client.ObjectKey }

// Error implements error.
func (e *SetExistsError) Error() string {
	return fmt.Sprintf("ManifestWorkReplicaSet %s exists with other manifests or another placement", e.Set)
}

// SetOwnsError says that a ManifestWorkReplicaSet makes a work, and would again.
type SetOwnsError struct {
	// Set is as it was read.
	Set *workv1alpha1.ManifestWorkReplicaSet
	// Work is on Cluster.
	Work, Cluster string
}

// Error implements error.
func (e *SetOwnsError) Error() string {
	return fmt.Sprintf("ManifestWork %s on %s belongs to ManifestWorkReplicaSet %s, which would make it again",
		e.Work, e.Cluster, client.ObjectKeyFromObject(e.Set))
}

// OtherPlacementError says that a ManifestWorkReplicaSet does not follow a placement.
type OtherPlacementError struct{ Set, Placement client.ObjectKey }

// Error implements error.
func (e *OtherPlacementError) Error() string {
	return fmt.Sprintf("ManifestWorkReplicaSet %s does not follow placement %s", e.Set, e.Placement)
}

// RequireFree returns a *SetOwnsError if one of the works is that of a
// ManifestWorkReplicaSet that is not being deleted itself.
func (h Hub) RequireFree(ctx context.Context, works []workv1.ManifestWork) error {
	for i := range works {
		set, err := h.setOf(ctx, &works[i])
		if err != nil {
			return err
		}
		if set != nil && set.DeletionTimestamp.IsZero() {
			return &SetOwnsError{Set: set, Work: works[i].Name, Cluster: works[i].Namespace}
		}
	}
	return nil
}

// setOf returns the ManifestWorkReplicaSet that makes a work, nil without one.
func (h Hub) setOf(ctx context.Context, work *workv1.ManifestWork) (*workv1alpha1.ManifestWorkReplicaSet, error) {
	namespace, name, owned := strings.Cut(work.Labels[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey], ".")
	if !owned {
		return nil, nil
	}
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	err := h.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ManifestWorkReplicaSet %s/%s: %w", namespace, name, err)
	}
	return set, nil
}

// FindSet returns the ManifestWorkReplicaSet called name that follows a placement, and
// its ManifestWorks.
func (h Hub) FindSet(ctx context.Context, name string, placement client.ObjectKey) (*workv1alpha1.ManifestWorkReplicaSet, []workv1.ManifestWork, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	key := client.ObjectKey{Namespace: placement.Namespace, Name: name}
	if err := h.Client.Get(ctx, key, set); err != nil {
		return nil, nil, fmt.Errorf("ManifestWorkReplicaSet %s: %w", key, err)
	}
	if !slices.ContainsFunc(set.Spec.PlacementRefs, func(ref workv1alpha1.LocalPlacementReference) bool { return ref.Name == placement.Name }) {
		return nil, nil, &OtherPlacementError{Set: key, Placement: placement}
	}
	works, err := h.worksOf(ctx, key)
	return set, works, err
}

// worksOf returns the ManifestWorks of a ManifestWorkReplicaSet.
func (h Hub) worksOf(ctx context.Context, set client.ObjectKey) ([]workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	labels := client.MatchingLabels{workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey: set.Namespace + "." + set.Name}
	if err := h.Client.List(ctx, &list, labels); err != nil {
		return nil, fmt.Errorf("ManifestWorks of ManifestWorkReplicaSet %s: %w", set, err)
	}
	return list.Items, nil
}

// DeleteSet deletes a ManifestWorkReplicaSet as it was read. The hub deletes its works.
func (h Hub) DeleteSet(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) error {
	err := h.Client.Delete(ctx, set.DeepCopy(), client.Preconditions{UID: &set.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ManifestWorkReplicaSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	return nil
}

// AwaitSetGone waits until a ManifestWorkReplicaSet and its works are gone.
func (h Hub) AwaitSetGone(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, works []workv1.ManifestWork, progress Progress) error {
	waiter := &apply.Waiter{Client: h.Client, Clock: h.Clock}
	waiter.Progress = func(object apply.Ref, message string) { progress(object.Namespace, message) }
	targets := []apply.Target{{Object: set, Check: apply.Gone()}}
	for i := range works {
		targets = append(targets, apply.Target{Object: empty(works[i].Namespace, works[i].Name), Check: goneOrWhy})
	}
	return waiter.Wait(ctx, targets...)
}

// PlanSet returns the ManifestWorkReplicaSet, in the namespace of a placement, that
// delivers a work to its clusters, and what has to change for that. It writes nothing.
func (h Hub) PlanSet(ctx context.Context, d Delivery, placement client.ObjectKey) (*workv1alpha1.ManifestWorkReplicaSet, Action, error) {
	live := &workv1alpha1.ManifestWorkReplicaSet{}
	live.Namespace, live.Name = placement.Namespace, d.Name
	key := client.ObjectKeyFromObject(live)
	err := h.Client.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return nil, "", fmt.Errorf("ManifestWorkReplicaSet %s: %w", key, err)
	}
	want := live.DeepCopy()
	work := empty("", d.Name)
	live.Spec.ManifestWorkTemplate.DeepCopyInto(&work.Spec)
	before := work.DeepCopy()
	d.fill(work)
	want.Spec.ManifestWorkTemplate = work.Spec
	refers := len(live.Spec.PlacementRefs) == 1 && live.Spec.PlacementRefs[0].Name == placement.Name
	if !refers {
		want.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{
			Name: placement.Name, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
		}}
	}
	switch {
	case apierrors.IsNotFound(err):
		return want, Create, nil
	case refers && same(before, work):
		return live, Unchanged, nil
	case !d.Overwrite:
		return nil, "", &SetExistsError{Set: key}
	}
	return want, Change, nil
}

// CarrySet makes the change of a ManifestWorkReplicaSet. For one that another client has
// changed since, such as the hub, the change is planned again.
func (h Hub) CarrySet(ctx context.Context, d Delivery, set *workv1alpha1.ManifestWorkReplicaSet, action Action) error {
	planned := true
	return retry.OnError(retry.DefaultRetry, contended, func() error {
		if !planned {
			live, now, err := h.PlanSet(ctx, d, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.PlacementRefs[0].Name})
			if err != nil {
				return err
			}
			live.DeepCopyInto(set)
			action = now
		}
		planned = false
		return h.carrySet(ctx, set, action)
	})
}

func (h Hub) carrySet(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, action Action) error {
	var err error
	switch action {
	case Create:
		err = h.Client.Create(ctx, set, client.FieldOwner(FieldManager))
	case Change:
		err = h.Client.Update(ctx, set, client.FieldOwner(FieldManager))
	case Unchanged, Remove:
	}
	if err != nil {
		return fmt.Errorf("ManifestWorkReplicaSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	return nil
}

// AwaitSet waits until a set is rolled out and all its ManifestWorks have come as far as a
// stage, or until ctx ends.
func (h Hub) AwaitSet(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, stage report.Stage, progress Progress) error {
	waiter := &apply.Waiter{Client: h.Client, Clock: h.Clock}
	waiter.Progress = func(object apply.Ref, message string) { progress(object.Namespace+"/"+object.Name, message) }
	rolled := apply.Condition(workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, string(metav1.ConditionTrue))
	if err := waiter.Wait(ctx, apply.Target{Object: set, Check: rolled}); err != nil {
		return err
	}
	works, err := h.worksOf(ctx, client.ObjectKeyFromObject(set))
	if err != nil {
		return err
	}
	clusters := make([]string, len(works))
	for i := range works {
		clusters[i] = works[i].Namespace
	}
	return h.Await(ctx, set.Name, clusters, stage, progress)
}
