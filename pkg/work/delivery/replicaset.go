package delivery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// SetExistsError says that there is a ManifestWorkReplicaSet of that name with other
// manifests or another placement.
type SetExistsError struct{ Set client.ObjectKey }

// Error implements error.
func (e *SetExistsError) Error() string {
	return fmt.Sprintf("ManifestWorkReplicaSet %s exists with other manifests or another placement", e.Set)
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

// CarrySet makes the change of a ManifestWorkReplicaSet.
func (h Hub) CarrySet(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, action Action) error {
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

// AwaitSet waits until all ManifestWorks of a set are applied and available, or until
// ctx ends.
func (h Hub) AwaitSet(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, progress Progress) error {
	waiter := &apply.Waiter{Client: h.Client, Clock: h.Clock}
	waiter.Progress = func(object apply.Ref, message string) { progress(object.Namespace+"/"+object.Name, message) }
	rolled := apply.Condition(workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, string(metav1.ConditionTrue))
	return waiter.Wait(ctx, apply.Target{Object: set, Check: rolled})
}
