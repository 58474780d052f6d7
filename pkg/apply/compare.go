package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// normalize returns obj as the content that is applied: without status and what
// the API server owns, and with a Secret's stringData in data, because the API
// server would not give stringData back to compare with.
func normalize(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	if gvk.Group == "" && gvk.Kind == "Secret" {
		if err := foldStringData(u); err != nil {
			return nil, err
		}
	}
	dropNulls(u.Object)
	return u, nil
}

func foldStringData(secret *unstructured.Unstructured) error {
	plain, _, err := unstructured.NestedStringMap(secret.Object, "stringData")
	if err != nil {
		return fmt.Errorf("stringData of secret %s: %w", secret.GetName(), err)
	}
	delete(secret.Object, "stringData")
	for key, value := range plain {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		if err := unstructured.SetNestedField(secret.Object, encoded, "data", key); err != nil {
			return fmt.Errorf("data of secret %s: %w", secret.GetName(), err)
		}
	}
	return nil
}

// dropNulls removes the nulls that Go types without omitempty encode to: to
// server-side apply a null is a value that is owned.
func dropNulls(m map[string]any) {
	for key, value := range m {
		switch v := value.(type) {
		case nil:
			delete(m, key)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if child, ok := item.(map[string]any); ok {
					dropNulls(child)
				}
			}
		}
	}
}

// stampHash writes the hash of the object's content into the annotation.
func stampHash(u *unstructured.Unstructured, annotation string) error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("hash %s: %w", refOf(u), err)
	}
	sum := sha256.Sum256(data)
	return unstructured.SetNestedField(u.Object, hex.EncodeToString(sum[:12]), "metadata", "annotations", annotation)
}

// sameContent reports whether two objects, as read or returned by the API server,
// have the same content. What the API server counts or records by itself, and the
// status, is not content.
func sameContent(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(content(a), content(b))
}

func content(obj *unstructured.Unstructured) map[string]any {
	c := obj.DeepCopy()
	delete(c.Object, "status")
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	dropNulls(c.Object)
	return c.Object
}
