package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
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
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = hex.EncodeToString(sum[:12])
	u.SetAnnotations(annotations)
	return nil
}

// inSync reports whether applying desired would change nothing: the same was
// applied before, and nobody changed a field of it since.
func inSync(desired, live *unstructured.Unstructured, annotation string) bool {
	return live.GetAnnotations()[annotation] == desired.GetAnnotations()[annotation] &&
		containsMap(desired.Object, live.Object)
}

// associative are the lists that the API server merges by key; other managers
// may add entries to them. Every other list is replaced as a whole.
func associative(field string) []string {
	switch field {
	case "containers", "initContainers", "env", "volumes", "imagePullSecrets", "matchConditions", "variables":
		return []string{"name"}
	case "volumeMounts":
		return []string{"mountPath"}
	case "ports":
		return []string{"containerPort", "port", "protocol"}
	case "hostAliases":
		return []string{"ip"}
	case "ownerReferences":
		return []string{"uid"}
	}
	return nil
}

// atomicMap reports whether the API server replaces a map as a whole.
func atomicMap(field string) bool {
	return slices.Contains([]string{"nodeSelector", "matchLabels", "roleRef"}, field)
}

// isQuantity reports whether the values under a field are quantities, which the
// API server may hand back in another notation.
func isQuantity(field string) bool {
	return slices.Contains([]string{"limits", "requests", "sizeLimit", "capacity", "hard"}, field)
}

func containsMap(desired, live map[string]any) bool {
	for key, want := range desired {
		if !contains(key, want, live[key]) {
			return false
		}
	}
	return true
}

// contains reports whether live, the value of a field, has everything that
// desired has. An absent value is as good as an empty one.
func contains(field string, desired, live any) bool {
	if live == nil {
		return isEmpty(desired)
	}
	switch want := desired.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok || (atomicMap(field) && len(have) != len(want)) {
			return false
		}
		if isQuantity(field) {
			return containsQuantities(want, have)
		}
		return containsMap(want, have)
	case []any:
		have, ok := live.([]any)
		return ok && containsList(field, want, have)
	}
	return sameScalar(desired, live) || (isQuantity(field) && sameQuantity(desired, live))
}

func containsList(field string, desired, live []any) bool {
	if keys := associative(field); keys != nil && allMaps(desired) && allMaps(live) {
		return containsByKey(keys, desired, live)
	}
	if len(desired) != len(live) {
		return false
	}
	for i := range desired {
		if !contains("", desired[i], live[i]) {
			return false
		}
	}
	return true
}

func containsByKey(keys []string, desired, live []any) bool {
	for _, want := range desired {
		matches := func(have any) bool {
			return slices.Equal(keyOf(keys, want), keyOf(keys, have)) && contains("", want, have)
		}
		if !slices.ContainsFunc(live, matches) {
			return false
		}
	}
	return true
}

// keyOf returns an entry's key. The protocol of a port is TCP unless it says
// otherwise.
func keyOf(keys []string, entry any) []string {
	m, ok := entry.(map[string]any)
	if !ok {
		return nil
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		switch value, ok := m[key]; {
		case ok:
			values[i] = fmt.Sprint(value)
		case key == "protocol":
			values[i] = "TCP"
		}
	}
	return values
}

func allMaps(list []any) bool {
	return !slices.ContainsFunc(list, func(entry any) bool {
		_, ok := entry.(map[string]any)
		return !ok
	})
}

func containsQuantities(desired, live map[string]any) bool {
	for key, want := range desired {
		if !sameQuantity(want, live[key]) && !contains("", want, live[key]) {
			return false
		}
	}
	return true
}

func sameQuantity(a, b any) bool {
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}

func sameScalar(a, b any) bool {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return math.Abs(x-y) < 1e-9
	}
	return equality.Semantic.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// isEmpty reports whether a value means the same as no value.
func isEmpty(v any) bool {
	switch value := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, child := range value {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	case string:
		return value == ""
	case bool:
		return !value
	}
	n, ok := number(v)
	return ok && n == 0
}

// immutableChange reports whether desired differs from live in a field that
// the API server refuses to change.
func immutableChange(desired, live *unstructured.Unstructured) bool {
	var path []string
	switch desired.GetKind() {
	case "RoleBinding", "ClusterRoleBinding":
		path = []string{"roleRef"}
	case "Deployment", "DaemonSet":
		path = []string{"spec", "selector"}
	case "Secret":
		path = []string{"type"}
	case kindCRD:
		path = []string{"spec", "scope"}
	default:
		return false
	}
	want, found, err := unstructured.NestedFieldNoCopy(desired.Object, path...)
	if err != nil || !found {
		return false
	}
	have, found, err := unstructured.NestedFieldNoCopy(live.Object, path...)
	return err == nil && found && !contains(path[len(path)-1], want, have)
}
