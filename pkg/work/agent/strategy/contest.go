package strategy

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Contest is a field of a manifest that another writer has given another value.
type Contest struct {
	// Field is the path of the field, such as .spec.replicas.
	Field string
	// Manager is the field manager of the other writer.
	Manager string
}

// mostDescribed is how many fields a description names.
const mostDescribed = 3

// Describe says in one sentence which fields other writers change back, and how to leave
// them alone. There is at least one.
func Describe(contests []Contest) string {
	fields := make([]string, 0, mostDescribed+1)
	for i, c := range contests {
		if i == mostDescribed {
			fields = append(fields, fmt.Sprintf("and %d more", len(contests)-i))
			break
		}
		fields = append(fields, fmt.Sprintf("%s by %q", c.Field, c.Manager))
	}
	return "other writers keep changing what is applied: " + strings.Join(fields, ", ") +
		"; to leave a field to its other writer, take it out of the manifest, or ignore it with the update strategy ServerSideApply"
}

// contests returns the fields that other writers have given values that body does not
// have, in the order of their paths.
func contests(existing, body *unstructured.Unstructured) []Contest {
	var found []Contest
	for manager, fields := range others(existing) {
		fields.Leaves().Iterate(func(path fieldpath.Path) {
			wanted, ok := at(body.Object, path)
			is, _ := at(existing.Object, path)
			if ok && !covers(is, wanted) {
				found = append(found, Contest{Field: path.String(), Manager: manager})
			}
		})
	}
	slices.SortFunc(found, func(a, b Contest) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Manager, b.Manager))
	})
	return slices.Compact(found)
}

// yield takes from body what only looks as if it said something: an empty value of a field
// that another writer has filled in, and a status that another writer has.
func yield(body, existing *unstructured.Unstructured) {
	for _, fields := range others(existing) {
		fields.Iterate(func(path fieldpath.Path) {
			if path[0].FieldName != nil && *path[0].FieldName == "status" {
				delete(body.Object, "status")
				return
			}
			dropEmpty(body.Object, path)
		})
	}
}

// dropEmpty removes the first field on a path that has an empty value.
func dropEmpty(object any, path fieldpath.Path) {
	for _, element := range path {
		below, ok := step(object, element)
		if !ok {
			return
		}
		if parent, ok := object.(map[string]any); ok && covers(nil, below) {
			delete(parent, *element.FieldName)
			return
		}
		object = below
	}
}

// others yields the managers of fields that are no work agent's.
func others(existing *unstructured.Unstructured) iter.Seq2[string, *fieldpath.Set] {
	return func(yield func(string, *fieldpath.Set) bool) {
		for _, m := range existing.GetManagedFields() {
			if ours(m) {
				continue
			}
			if !yield(m.Manager, fieldsOf(m)) {
				return
			}
		}
	}
}

// ours reports whether a work agent wrote fields with the strategy Update.
func ours(m metav1.ManagedFieldsEntry) bool {
	return m.Manager == workv1.DefaultFieldManager && m.Subresource == ""
}

// at returns the value of a path.
func at(object any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		below, ok := step(object, element)
		if !ok {
			return nil, false
		}
		object = below
	}
	return object, true
}

// step returns the value of one element of a path. A list item without one of the keys has
// its default, and so any value.
func step(object any, element fieldpath.PathElement) (any, bool) {
	switch object := object.(type) {
	case map[string]any:
		if element.FieldName == nil {
			return nil, false
		}
		below, ok := object[*element.FieldName]
		return below, ok
	case []any:
		i := slices.IndexFunc(object, func(item any) bool { return is(item, element) })
		if i < 0 {
			return nil, false
		}
		return object[i], true
	}
	return nil, false
}

// is reports whether a list item is the one that an element of a path names.
func is(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return value.Equals(value.NewValueInterface(item), *element.Value)
	}
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	return !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
		v, ok := fields[key.Name]
		return ok && !value.Equals(value.NewValueInterface(v), key.Value)
	})
}
