package strategy

import (
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// content is what an object says that a manifest can say, too: no status, and of the
// metadata labels and annotations.
func content(object *unstructured.Unstructured) map[string]any {
	c := maps.Clone(object.Object)
	delete(c, "status")
	metadata := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if value, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field); ok {
			metadata[field] = value
		}
	}
	c["metadata"] = metadata
	return c
}

// covers reports whether everything that is desired exists. An empty value desires nothing.
func covers(existing, desired any) bool {
	switch desired := desired.(type) {
	case nil:
		return true
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
			return len(desired) == 0
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
