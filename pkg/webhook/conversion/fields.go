package conversion

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// fieldError says which field of an object, such as status.registrations[2], is not
// what both versions of the API say it is.
func fieldError(problem string, path ...string) error {
	return fmt.Errorf("%s %s", strings.Join(path, "."), problem)
}

// mapAt returns the object under a path, and false if it is missing or null.
func mapAt(obj map[string]any, path ...string) (map[string]any, bool, error) {
	for i, key := range path {
		value := obj[key]
		if value == nil {
			return nil, false, nil
		}
		child, ok := value.(map[string]any)
		if !ok {
			return nil, false, fieldError("is no object", path[:i+1]...)
		}
		obj = child
	}
	return obj, true, nil
}

// itemsOf returns the objects of a list. It reports false where the field is
// absent or null.
func itemsOf(obj map[string]any, parent, key string) ([]map[string]any, bool, error) {
	value := obj[key]
	if value == nil {
		return nil, false, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false, fieldError("is no list", parent, key)
	}
	items, err := objects(list, parent+"."+key)
	return items, err == nil, err
}

func objects(list []any, path string) ([]map[string]any, error) {
	items := make([]map[string]any, len(list))
	for i, entry := range list {
		item, ok := entry.(map[string]any)
		if !ok {
			return nil, fieldError("is no object", fmt.Sprintf("%s[%d]", path, i))
		}
		items[i] = item
	}
	return items, nil
}

// stringAt returns a string, and false if there is none.
func stringAt(obj map[string]any, parent, key string) (string, bool, error) {
	value := obj[key]
	if value == nil {
		return "", false, nil
	}
	text, ok := value.(string)
	if !ok {
		return "", false, fieldError("is no text", parent, key)
	}
	return text, true, nil
}

// fieldOf returns the value of a field, which may be null, or nil where there
// is no such field.
func fieldOf(obj map[string]any, key string) *any {
	value, ok := obj[key]
	if !ok {
		return nil
	}
	return &value
}

func anyList(items []map[string]any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// rename moves a field of obj to another name, which the version that obj was
// written in does not know.
func rename(obj map[string]any, from, to string) {
	delete(obj, to)
	if value, ok := obj[from]; ok {
		obj[to] = value
		delete(obj, from)
	}
}

// without returns a copy of obj that lacks some fields.
func without(obj map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(obj))
	maps.Copy(out, obj)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}

// equal compares two JSON trees that were read by the same reader.
func equal(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }
