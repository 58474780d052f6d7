package strategy

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"
)

// RemoveIgnored is removeIgnored.
func RemoveIgnored(ctx context.Context, object *unstructured.Unstructured, fields []workv1.IgnoreField) error {
	return removeIgnored(ctx, object, fields)
}

// SpecHash is specHash.
func SpecHash(object *unstructured.Unstructured) string { return specHash(object) }

// Merge is merge.
func Merge(existing, desired map[string]string) map[string]string { return merge(existing, desired) }

// Covers is covers.
func Covers(existing, desired any) bool { return covers(existing, desired) }

// Replacement is what a manifest replaces an existing object by.
func Replacement(manifest, existing *unstructured.Unstructured) *unstructured.Unstructured {
	o := operation{Request: Request{Manifest: manifest}}
	return o.replacement(existing)
}
