package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete requests the deletion of objs, the last one first, and does not wait: the
// change set has the objects that are gone (deleted) and that still exist (deleting),
// but no objects that were gone before. An object that is already being deleted costs
// no write, unless the API server has given up on it for a while, so Delete can be
// called until the change set is empty.
func (a *Applier) Delete(ctx context.Context, objs ...client.Object) (ChangeSet, error) {
	desired, err := a.desired(objs)
	if err != nil {
		return nil, err
	}
	var changes ChangeSet
	for _, obj := range slices.Backward(desired) {
		action, err := a.deleteOne(ctx, obj)
		if err != nil {
			return changes, fmt.Errorf("delete %s: %w", refOf(obj), err)
		}
		if action != "" {
			changes = append(changes, Change{Object: refOf(obj), Action: action})
		}
	}
	return changes, nil
}

func (a *Applier) deleteOne(ctx context.Context, obj *unstructured.Unstructured) (Action, error) {
	live, err := a.live(ctx, obj)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if live.GetDeletionTimestamp() != nil {
		return Deleting, a.remind(ctx, live)
	}
	uid := live.GetUID()
	err = a.Client.Delete(ctx, obj.DeepCopy(),
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if len(live.GetFinalizers()) > 0 || isNamespace(live) || isCRD(live) {
		return Deleting, nil
	}
	return Deleted, nil
}

// remind makes the API server try again to empty a CRD at once. When it fails,
// because the storage of a kind without any object so far is not ready, it waits
// for minutes before it looks again by itself, but it looks at every change.
func (a *Applier) remind(ctx context.Context, live *unstructured.Unstructured) error {
	c, ok := ConditionOf(live, "Terminating")
	if !ok || !isCRD(live) || c["reason"] != "InstanceDeletionFailed" {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, HashAnnotationPrefix+"deletion-retry", live.GetResourceVersion())
	err := a.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(a.FieldManager))
	return client.IgnoreNotFound(err)
}

// DeleteAndWait deletes objs in the stages of Apply backwards, and waits at
// each until the objects are gone or ctx ends. Progress is reported through waiter.
func (a *Applier) DeleteAndWait(ctx context.Context, waiter *Waiter, objs ...client.Object) (ChangeSet, error) {
	desired, err := a.desired(objs)
	if err != nil {
		return nil, err
	}
	var changes ChangeSet
	for _, stage := range slices.Backward(stages(desired)) {
		var targets []Target
		part := make([]client.Object, len(stage))
		for i, obj := range stage {
			part[i] = obj
			targets = append(targets, Target{Object: obj, Check: Gone()})
		}
		deleted, err := a.Delete(ctx, part...)
		if err == nil && !a.DryRun {
			err = waiter.Wait(ctx, targets...)
		}
		for _, change := range deleted {
			if err == nil && !a.DryRun {
				change.Action = Deleted
			}
			changes = append(changes, change)
		}
		if err != nil {
			return changes, err
		}
	}
	return changes, nil
}
