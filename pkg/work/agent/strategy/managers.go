package strategy

import (
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	workv1 "open-cluster-management.io/api/work/v1"
)

// adopt makes manager the one that applied what work agents wrote before, with an update or
// as another manager: else a field that left the manifest would stay for good.
// See https://pkg.go.dev/k8s.io/client-go/util/csaupgrade.
func (o *operation) adopt(ctx context.Context, object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	// Another work may apply other fields of the object as a manager of its own.
	alone := o.Owned && len(o.works(object)) == 1 && len(o.owners(o.works(object))) == 1
	upgraded := &unstructured.Unstructured{Object: map[string]any{}}
	managers, writers := asUpdates(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		if m.Manager == manager || !alone {
			return m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationUpdate
		}
		return strings.HasPrefix(m.Manager, workv1.DefaultFieldManager)
	})
	if len(writers) == 0 {
		return object, nil
	}
	upgraded.SetManagedFields(managers)
	if err := csaupgrade.UpgradeManagedFields(upgraded, writers, manager); err != nil {
		return nil, err
	}
	return o.setManagers(ctx, object, upgraded.GetManagedFields())
}

// asUpdates returns field managers with those that are to be adopted as managers that
// update, and the names of these. Each has a name of its own: the upgrade takes one entry
// of a name.
func asUpdates(managers []metav1.ManagedFieldsEntry, adopted func(metav1.ManagedFieldsEntry) bool) ([]metav1.ManagedFieldsEntry, sets.Set[string]) {
	writers := sets.New[string]()
	updates := make([]metav1.ManagedFieldsEntry, len(managers))
	for i, m := range managers {
		if fields := withoutOwners(m); m.Subresource == "" && adopted(m) && !fields.Empty() {
			m.Manager += " " + string(m.Operation)
			m.Operation, m.FieldsV1 = metav1.ManagedFieldsOperationUpdate, encode(fields)
			writers.Insert(m.Manager)
		}
		updates[i] = m
	}
	return updates, writers
}

// takeAway makes body a merge patch that also takes away what work agents have written to an
// object and body does not say. Lists in body replace those of the object.
func takeAway(body, existing *unstructured.Unstructured) {
	for _, m := range existing.GetManagedFields() {
		if !ours(m) {
			continue
		}
		withoutOwners(m).Leaves().Iterate(func(path fieldpath.Path) {
			var names []string
			for _, element := range path {
				if element.FieldName == nil {
					break // It is in a list.
				}
				names = append(names, *element.FieldName)
			}
			if _, ok := at(body.Object, path[:len(names)]); !ok {
				_ = unstructured.SetNestedField(body.Object, nil, names...) // Above it may be no object: then it goes with that.
			}
		})
	}
}

// disown takes the owner references from the fields that a manager has applied.
func (o *operation) disown(ctx context.Context, applied *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	managers := applied.GetManagedFields()
	for i, m := range managers {
		if m.Manager != manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" {
			continue
		}
		rest := withoutOwners(m)
		if rest.Equals(fieldsOf(m)) {
			break
		}
		managers[i].FieldsV1 = encode(rest)
		return o.setManagers(ctx, applied, managers)
	}
	return applied, nil
}

// setManagers writes the managers of an object's fields, unless the object has changed.
func (o *operation) setManagers(ctx context.Context, object *unstructured.Unstructured, managers []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": managers},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	return o.objects.Patch(ctx, object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: workv1.DefaultFieldManager})
}

// fieldsOf returns the fields of a manager. Fields that cannot be read are none: only an
// API server of another time can have written them.
func fieldsOf(m metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := fieldpath.NewSet()
	if m.FieldsV1 == nil || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return fields
}

// withoutOwners returns the fields of a manager but the owner references, which are never
// among those that a work agent applies if it is asked to apply server-side: OCM's applies as
// the same manager without them, and would take them away with its first request.
func withoutOwners(m metav1.ManagedFieldsEntry) *fieldpath.Set {
	return fieldsOf(m).RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "ownerReferences")))
}

func encode(fields *fieldpath.Set) *metav1.FieldsV1 {
	data, err := fields.ToJSON()
	if err != nil {
		panic(err) // It writes to memory what was read from JSON.
	}
	return metav1.NewFieldsV1(string(data))
}
