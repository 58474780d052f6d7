package strategy

import (
	"context"
	"encoding/json"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "open-cluster-management.io/api/work/v1"
)

// owners returns owner references with, or without, the one of the request. References
// in manifests are ignored: they would name objects of another cluster.
func (o *operation) owners(existing []metav1.OwnerReference) []metav1.OwnerReference {
	at := slices.IndexFunc(existing, func(r metav1.OwnerReference) bool { return r.UID == o.Owner.UID })
	switch {
	case o.Owned && at < 0:
		return append(slices.Clone(existing), o.Owner)
	case !o.Owned && at >= 0:
		return slices.Delete(slices.Clone(existing), at, at+1)
	}
	return existing
}

// ensureOwner adds or removes the owner reference of the request, if need be.
func (o *operation) ensureOwner(ctx context.Context, existing *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := existing.GetOwnerReferences()
	after := o.owners(before)
	if apiequality.Semantic.DeepEqual(before, after) {
		return existing, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": existing.GetUID(), "resourceVersion": existing.GetResourceVersion(), "ownerReferences": after,
	}})
	if err != nil {
		return nil, err
	}
	return o.objects.Patch(ctx, existing.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workv1.DefaultFieldManager})
}
