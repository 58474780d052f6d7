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

// Covers is covers.
func Covers(existing, desired any) bool { return covers(existing, desired) }

// Said is what a manifest says.
func Said(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	o := operation{Request: Request{Manifest: manifest}}
	return o.said()
}

// Yield is yield.
func Yield(body, existing *unstructured.Unstructured) { yield(body, existing) }

// Contests is contests.
func Contests(existing, body *unstructured.Unstructured) []Contest { return contests(existing, body) }
