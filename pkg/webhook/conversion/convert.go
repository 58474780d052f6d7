package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Group is the API group of add-ons.
const Group = "addon.open-cluster-management.io"

// The versions that are converted.
const (
	V1alpha1 = "v1alpha1"
	V1beta1  = "v1beta1"
)

// CRDs name the CRDs of the kinds that are converted.
func CRDs() []string {
	return []string{"clustermanagementaddons." + Group, "managedclusteraddons." + Group}
}

// scope is the conversion of one object.
type scope struct {
	// obj is converted in place.
	obj map[string]any
	// carried is the content from the carrier of the other version, and carry the
	// content for the next carrier.
	carried, carry parts
}

// converter converts one kind in one direction.
type converter func(*scope) error

// route is a kind in the version that it is converted to.
type route struct {
	kind, to string
}

func routes() map[route]converter {
	return map[route]converter{
		{"ManagedClusterAddOn", V1beta1}:     managedClusterAddOnToBeta,
		{"ManagedClusterAddOn", V1alpha1}:    managedClusterAddOnToAlpha,
		{"ClusterManagementAddOn", V1beta1}:  clusterManagementAddOnToBeta,
		{"ClusterManagementAddOn", V1alpha1}: clusterManagementAddOnToAlpha,
	}
}

// Convert returns an add-on in another version of its API. It does not modify
// the object, and returns a copy of one that has that version already.
func Convert(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(in.Object)}
	from := in.GroupVersionKind()
	convert, ok := routes()[route{from.Kind, to.Version}]
	known := from.Version == V1alpha1 || from.Version == V1beta1
	if !ok || !known || from.Group != Group || to.Group != Group {
		return nil, fmt.Errorf("%s in %s cannot be converted to %s: this version of kubectl-ocm converts ManagedClusterAddOn and ClusterManagementAddOn between %s/%s and %s",
			from.Kind, from.GroupVersion(), to, Group, V1alpha1, V1beta1)
	}
	if from.Version == to.Version {
		return out, nil
	}
	if err := withCarriers(out.Object, to.Version, convert); err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(to.WithKind(from.Kind))
	return out, nil
}

// withCarriers converts an object to a version: it restores the content of that
// version's carrier on the object, and stores the values that only the former version
// can express in the carrier of that version.
func withCarriers(obj map[string]any, to string, convert converter) error {
	annotations, _, err := mapAt(obj, "metadata", "annotations")
	if err != nil {
		return err
	}
	brought, left := names.AnnotationCarriesV1beta1, names.AnnotationCarriesV1alpha1
	if to == V1alpha1 {
		brought, left = left, brought
	}
	s := &scope{obj: obj, carried: takeCarrier(annotations, brought), carry: parts{}}
	delete(annotations, left) // It means something in the other version only.
	if err := convert(s); err != nil {
		return err
	}
	if len(s.carry) == 0 {
		return s.annotate(left, nil)
	}
	text, err := s.carry.write()
	if err != nil {
		return err
	}
	return s.annotate(left, &text)
}

// annotate sets or, for nil, removes an annotation. No annotations at all are
// no map, as the API server has it.
func (s *scope) annotate(key string, value *string) error {
	annotations, ok, err := mapAt(s.obj, "metadata", "annotations")
	switch {
	case err != nil:
		return err
	case value == nil && !ok:
		return nil
	case !ok:
		metadata, ok, err := mapAt(s.obj, "metadata")
		if err != nil {
			return err
		}
		if !ok {
			metadata = map[string]any{}
			s.obj["metadata"] = metadata
		}
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	if value != nil {
		annotations[key] = *value
		return nil
	}
	delete(annotations, key)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(s.obj, "metadata", "annotations")
	}
	return nil
}

// carryField takes a field along that the other version lacks.
func (s *scope) carryField(obj map[string]any, key string) {
	if value, ok := obj[key]; ok {
		s.carry[key] = value
		delete(obj, key)
	}
}

// restoreField puts back a field that the other version lacks.
func (s *scope) restoreField(obj map[string]any, key string) {
	delete(obj, key)
	if value, ok := s.carried[key]; ok {
		obj[key] = value
	}
}

// convertList converts the list key of obj, under parent, and carries the entries that
// a conversion back would change.
func (s *scope) convertList(obj map[string]any, parent, key string, e element) error {
	entries, ok, err := itemsOf(obj, parent, key)
	if err != nil || !ok {
		return err
	}
	out, err := e.convert(entries, s.carried.items(key))
	if err != nil {
		return err
	}
	if e.finish != nil {
		e.finish(out)
	}
	list := make([]any, len(out))
	for i := range out {
		list[i] = out[i].entry
	}
	obj[key] = list
	carry := lost(entries, out, func(i int) bool { return !equal(e.back(out[i].entry), entries[i]) })
	if len(carry) > 0 {
		s.carry[key] = anyList(carry)
	}
	return nil
}
