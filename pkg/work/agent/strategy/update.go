package strategy

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"
)

// update replaces the object by the manifest. Labels, annotations, owners and finalizers
// of others stay.
func (o *operation) update(ctx context.Context) (*unstructured.Unstructured, error) {
	if o.Missing {
		return o.create(ctx)
	}
	existing, err := o.get(ctx)
	if apierrors.IsNotFound(err) {
		return o.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	body := o.replacement(existing)
	if unchanged(existing, body, o.Settled) {
		return existing, nil
	}
	updated, err := o.put(ctx, body)
	if !apierrors.IsInvalid(err) {
		return updated, err
	}
	// The server has set a field that cannot be taken away again, such as the selector
	// of a Job or the volume of a claim.
	content := body.Object
	body.Object = existing.DeepCopy().Object
	overlay(body.Object, content)
	if apiequality.Semantic.DeepEqual(body.Object, existing.Object) {
		return existing, nil
	}
	if updated, errMerged := o.put(ctx, body); errMerged == nil || !apierrors.IsInvalid(errMerged) {
		return updated, errMerged
	}
	return nil, err
}

func (o *operation) put(ctx context.Context, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return o.objects.Update(ctx, body, metav1.UpdateOptions{FieldManager: workv1.DefaultFieldManager})
}

// replacement returns the manifest as an update of the existing object.
func (o *operation) replacement(existing *unstructured.Unstructured) *unstructured.Unstructured {
	body := o.Manifest.DeepCopy()
	labels, annotations := body.GetLabels(), body.GetAnnotations()
	// The rest of the metadata is the server's.
	metadata, _, _ := unstructured.NestedFieldNoCopy(existing.Object, "metadata")
	if m, ok := metadata.(map[string]any); ok {
		body.Object["metadata"] = runtime.DeepCopyJSON(m)
	}
	body.SetManagedFields(nil)
	body.SetLabels(merge(existing.GetLabels(), labels))
	body.SetAnnotations(merge(existing.GetAnnotations(), annotations))
	body.SetOwnerReferences(o.owners(existing.GetOwnerReferences()))
	for _, field := range retained(body.GroupVersionKind().GroupKind()) {
		value, ok := existing.Object[field]
		if _, said := body.Object[field]; ok && !said {
			body.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	encodeStringData(body)
	return body
}

// retained returns the fields that controllers of the cluster fill in: a manifest without
// them does not take them away.
func retained(kind schema.GroupKind) []string {
	if kind == (schema.GroupKind{Kind: "ServiceAccount"}) {
		return []string{"status", "secrets", "imagePullSecrets"}
	}
	return []string{"status"}
}

// encodeStringData does to a Secret what the API server does, so that it compares with
// what the server stored.
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

// merge adds the desired labels or annotations to existing ones. A desired key that ends
// in "-" takes the key before the dash away.
func merge(existing, desired map[string]string) map[string]string {
	merged := maps.Clone(existing)
	for key, value := range desired {
		if removed, ok := strings.CutSuffix(key, "-"); ok {
			delete(merged, removed)
			continue
		}
		if merged == nil {
			merged = map[string]string{}
		}
		merged[key] = value
	}
	return merged
}

// overlay sets the desired fields and leaves the others.
func overlay(existing, desired map[string]any) {
	for key, value := range desired {
		below, ok := value.(map[string]any)
		if before, had := existing[key].(map[string]any); ok && had && key != "metadata" {
			overlay(before, below)
			continue
		}
		existing[key] = value
	}
}
