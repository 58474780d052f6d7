package cleanup

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ChangedError reports an object that changed after it was found, and was not removed.
type ChangedError struct{ Cause error }

// Error implements error.
func (e *ChangedError) Error() string { return "it has changed meanwhile and was left alone" }

// Unwrap returns the conflict.
func (e *ChangedError) Unwrap() error { return e.Cause }

// Remove removes an orphan, unless it has changed since it was found: the error is a
// *ChangedError then. An object that no longer exists is no error.
func Remove(ctx context.Context, c client.Client, orphan inventory.Orphan) error {
	var err error
	if addOn, ok := orphan.Object.(*addonv1beta1.ManagedClusterAddOn); ok {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error { return removeCondition(ctx, c, addOn, orphan.Condition) })
	} else {
		uid, version := orphan.Object.GetUID(), orphan.Object.GetResourceVersion()
		err = c.Delete(ctx, orphan.Object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return &ChangedError{Cause: err}
	}
	return err
}

// removeCondition removes a condition from the status, which the cluster's agent writes as
// well. A condition that differs from the one that was found stays.
func removeCondition(ctx context.Context, c client.Client, seen *addonv1beta1.ManagedClusterAddOn, kind string) error {
	live := &addonv1beta1.ManagedClusterAddOn{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(seen), live); err != nil {
		return err
	}
	was, now := apimeta.FindStatusCondition(seen.Status.Conditions, kind), apimeta.FindStatusCondition(live.Status.Conditions, kind)
	if now == nil || live.UID != seen.UID || !apiequality.Semantic.DeepEqual(was, now) {
		return nil
	}
	base := client.MergeFromWithOptions(live.DeepCopy(), client.MergeFromWithOptimisticLock{})
	apimeta.RemoveStatusCondition(&live.Status.Conditions, kind)
	return c.Status().Patch(ctx, live, base, client.FieldOwner(names.FieldManagerCLI))
}
