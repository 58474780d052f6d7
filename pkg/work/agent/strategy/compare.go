package strategy

import (
	"encoding/json"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"
)

// unchanged reports whether an update with body would surely change nothing. What the
// server has added looks like what an earlier manifest or another writer has: without
// a settled manifest, or with the fields of another writer, only the server can say.
func unchanged(existing, body *unstructured.Unstructured, settled bool) bool {
	return settled &&
		maps.Equal(existing.GetLabels(), body.GetLabels()) &&
		maps.Equal(existing.GetAnnotations(), body.GetAnnotations()) &&
		apiequality.Semantic.DeepEqual(existing.GetOwnerReferences(), body.GetOwnerReferences()) &&
		covers(content(existing), content(body)) &&
		ours(existing.GetManagedFields())
}

// content is an object without its metadata and status.
func content(object *unstructured.Unstructured) map[string]any {
	c := maps.Clone(object.Object)
	delete(c, "metadata")
	delete(c, "status")
	return c
}

// covers reports whether everything that is desired exists.
func covers(existing, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		existing, ok := existing.(map[string]any)
		if !ok {
			return len(desired) == 0
		}
		for key, value := range desired {
			if !covers(existing[key], value) {
				return false
			}
		}
		return true
	case []any:
		existing, _ := existing.([]any)
		if len(existing) != len(desired) {
			return false
		}
		for i := range desired {
			if !covers(existing[i], desired[i]) {
				return false
			}
		}
		return true
	}
	return apiequality.Semantic.DeepEqual(existing, desired)
}

// ours reports whether only updates of the work agent set fields of the content.
func ours(managers []metav1.ManagedFieldsEntry) bool {
	for _, m := range managers {
		if m.Manager == workv1.DefaultFieldManager && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == "" {
			continue
		}
		var fields map[string]json.RawMessage
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			return false
		}
		delete(fields, "f:metadata")
		delete(fields, "f:status")
		if len(fields) > 0 {
			return false
		}
	}
	return len(managers) > 0
}
