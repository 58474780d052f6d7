package addonpatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
)

// SetConditions sets the conditions of an owner and reports whether a write was needed.
// It uses server-side apply, which leaves the conditions of others alone, and removes those
// that the owner had set like this before and that are missing now. It changes nothing about
// an add-on that changed since it was read, because when a condition changed last follows
// from what was read.
func SetConditions(ctx context.Context, c client.Client, owner client.FieldOwner, addOn *addonv1beta1.ManagedClusterAddOn,
	now time.Time, want ...metav1.Condition,
) (changed bool, err error) {
	conditions := slices.Clone(addOn.Status.Conditions)
	for _, condition := range want {
		condition.LastTransitionTime = metav1.NewTime(now)
		changed = apimeta.SetStatusCondition(&conditions, condition) || changed
	}
	if !changed {
		return false, nil
	}
	var applied []any
	for _, condition := range want {
		applied = append(applied, apimeta.FindStatusCondition(conditions, condition.Type))
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": addonv1beta1.GroupVersion.String(),
		"kind":       "ManagedClusterAddOn",
		"metadata":   map[string]any{"namespace": addOn.Namespace, "name": addOn.Name, "uid": addOn.UID, "resourceVersion": addOn.ResourceVersion},
		"status":     map[string]any{"conditions": applied},
	})
	if err != nil {
		return false, err
	}
	patch := client.RawPatch(types.ApplyPatchType, body)
	err = c.Status().Patch(ctx, bare(addOn), patch, owner, client.ForceOwnership)
	// Where a client of v1alpha1 owns fields, the API server converts the object to find out who
	// owns what, and fails while the conversion webhook is down. A merge needs no conversion.
	if apierrors.IsInternalError(err) {
		err := Status(ctx, c, owner, addOn, map[string]any{"conditions": conditions})
		return err == nil, err
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("conditions of add-on %s of cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	return true, nil
}

// RemoveCondition removes a condition, regardless of its owner.
func RemoveCondition(ctx context.Context, c client.Client, owner client.FieldOwner, addOn *addonv1beta1.ManagedClusterAddOn, kind string) error {
	conditions := slices.Clone(addOn.Status.Conditions)
	if !apimeta.RemoveStatusCondition(&conditions, kind) {
		return nil
	}
	return Status(ctx, c, owner, addOn, map[string]any{"conditions": conditions})
}

// Status merges fields into the status, unless the add-on changed since it was read.
func Status(ctx context.Context, c client.Client, owner client.FieldOwner, addOn *addonv1beta1.ManagedClusterAddOn, fields map[string]any) error {
	err := mergepatch.Write(ctx, c, owner, bare(addOn), mergepatch.Fields{"status": fields})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("status of add-on %s of cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	return nil
}

// Metadata merges fields into the metadata, unless the add-on changed since it
// was read. Afterwards addOn has the resource version of the result.
func Metadata(ctx context.Context, c client.Client, owner client.FieldOwner, addOn *addonv1beta1.ManagedClusterAddOn, fields map[string]any) error {
	written := bare(addOn)
	err := mergepatch.Write(ctx, c, owner, written, mergepatch.Fields{"metadata": fields})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("add-on %s of cluster %s: %w", addOn.Name, addOn.Namespace, err)
	}
	addOn.ResourceVersion = written.ResourceVersion
	return nil
}

// bare identifies an add-on as it was read. Because the object is metadata only, the
// server returns only the metadata, and the caller needs no more.
func bare(addOn *addonv1beta1.ManagedClusterAddOn) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: addOn.Namespace, Name: addOn.Name, UID: addOn.UID, ResourceVersion: addOn.ResourceVersion,
	}}
	object.SetGroupVersionKind(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"))
	return object
}
