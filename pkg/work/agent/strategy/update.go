package strategy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1 "open-cluster-management.io/api/work/v1"
)

// update applies the manifest, and takes its fields from other managers. What no manifest of
// this object ever said stays; what an earlier one said and this one does not goes: the API
// server keeps, in managedFields, what was applied last.
// See docs/guides/works.md#what-is-applied.
func (o *operation) update(ctx context.Context) (Result, error) {
	if !o.Missing {
		existing, err := o.get(ctx)
		if err == nil {
			return o.merge(ctx, existing)
		}
		if !apierrors.IsNotFound(err) {
			return Result{}, err
		}
	}
	body := o.said()
	body.SetOwnerReferences(o.owners(nil))
	// Without force, an object that exists after all is a conflict, and is read.
	created, err := o.apply(ctx, body, metav1.ApplyOptions{FieldManager: workv1.DefaultFieldManager})
	if untyped(err) {
		created, err = o.create(ctx)
	}
	return Result{Object: created}, err
}

// merge applies the manifest to an existing object.
func (o *operation) merge(ctx context.Context, existing *unstructured.Unstructured) (Result, error) {
	body := o.said()
	if o.Settled && covers(content(existing), content(body)) {
		object, err := o.ensureOwner(ctx, existing)
		return Result{Object: object}, err
	}
	yield(body, existing)
	result := Result{Contests: contests(existing, body)}
	existing, err := o.adopt(ctx, existing, workv1.DefaultFieldManager)
	if err != nil {
		return Result{}, err
	}
	body.SetOwnerReferences(o.owners(o.works(existing)))
	applied, err := o.apply(ctx, body, metav1.ApplyOptions{FieldManager: workv1.DefaultFieldManager, Force: true})
	if apierrors.IsInvalid(err) || untyped(err) {
		applied, err = o.lay(ctx, existing, body, err)
	}
	if err != nil {
		return Result{}, err
	}
	result.Object, err = o.ensureOwner(ctx, applied)
	return result, err
}

// lay lays the manifest over the object after the API server has refused to apply it. If it
// may not let go of a field that it has set, such as the selector of a Job or the volume of
// a claim, no field is taken away.
func (o *operation) lay(ctx context.Context, existing, body *unstructured.Unstructured, refused error) (*unstructured.Unstructured, error) {
	laid := body.DeepCopy()
	unstructured.RemoveNestedField(laid.Object, "metadata", "ownerReferences")
	if untyped(refused) {
		takeAway(laid, existing)
	}
	patch, err := json.Marshal(laid.Object)
	if err != nil {
		return nil, err
	}
	return o.objects.Patch(ctx, laid.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: workv1.DefaultFieldManager})
}

// untyped reports whether the API server has refused to apply a manifest that it would
// create: a list has two items of one key, such as a variable of a container, or a field is
// unknown. It answers that with status 500 and no reason.
func untyped(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// works returns the owner references that work agents have set: another work may have the
// object, too, and its agent applies as the same manager.
func (o *operation) works(existing *unstructured.Unstructured) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(existing.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Kind != o.Owner.Kind || r.APIVersion != o.Owner.APIVersion
	})
}

// said returns what the manifest says, as the API server would store it.
func (o *operation) said() *unstructured.Unstructured {
	body := clean(o.Manifest)
	removeNullTimes(body.Object)
	encodeStringData(body)
	return body
}

// encodeStringData does to a Secret what the API server does, so that it compares with
// what the server stored, and a key that left the manifest leaves the Secret.
func encodeStringData(body *unstructured.Unstructured) {
	text, ok, _ := unstructured.NestedStringMap(body.Object, "stringData")
	if !ok || body.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return
	}
	data, ok := body.Object["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
		body.Object["data"] = data
	}
	for key, value := range text {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	delete(body.Object, "stringData")
}
