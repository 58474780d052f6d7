package manifest

import (
	"errors"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Manifest is one entry of the workload of a ManifestWork.
type Manifest struct {
	// Ordinal is its place in the spec, from 0.
	Ordinal int
	// Object is the decoded manifest, without a UID; nil if it cannot be decoded.
	Object *unstructured.Unstructured
	// Err says why the manifest cannot be applied: it cannot be decoded, has no name,
	// asks for a generated one, or repeats an earlier manifest. It does not depend on
	// the cluster.
	Err error
}

// Decode returns the manifests of a work in the order of its spec. Objects are the
// caller's.
func Decode(work *workv1.ManifestWork) []Manifest {
	manifests := make([]Manifest, len(work.Spec.Workload.Manifests))
	seen := make(map[string]bool, len(manifests))
	for i := range manifests {
		m := Manifest{Ordinal: i}
		m.Object, m.Err = decode(work.Spec.Workload.Manifests[i].Raw)
		if m.Err == nil {
			m.Err = checkNames(m.Object, seen)
		}
		manifests[i] = m
	}
	return manifests
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	err := object.UnmarshalJSON(raw)
	if runtime.IsMissingKind(err) { // This error quotes the manifest.
		return nil, errors.New("kind must be set in manifest")
	}
	if err != nil {
		return nil, err
	}
	// An object of this UID exists at most in another cluster: an API server
	// rejects the manifest because of it.
	object.SetUID("")
	return object, nil
}

// checkNames returns what is wrong with the name of an object, and adds the object to
// those seen.
func checkNames(object *unstructured.Unstructured, seen map[string]bool) error {
	if object.GetName() == "" {
		return errors.New("name must be set in manifest")
	}
	if object.GetGenerateName() != "" {
		return errors.New("generateName must not be set in manifest")
	}
	key := fmt.Sprintf("%s/%s/%s/%s", object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
	if seen[key] {
		return Duplicate(Manifest{Object: object}.Meta(nil))
	}
	seen[key] = true
	return nil
}

// Duplicate returns the error of a manifest whose object an earlier manifest is about.
func Duplicate(meta workv1.ManifestResourceMeta) error {
	apiVersion := schema.GroupVersion{Group: meta.Group, Version: meta.Version}
	return fmt.Errorf("duplicate manifest for resource %s/%s with resource type %s.%s", meta.Namespace, meta.Name, apiVersion, meta.Kind)
}

// Meta returns how the status of a work refers to the manifest. Without a mapping,
// which a kind that the cluster does not serve has not, it names no resource.
func (m Manifest) Meta(mapping *apimeta.RESTMapping) workv1.ManifestResourceMeta {
	meta := workv1.ManifestResourceMeta{Ordinal: int32(m.Ordinal)} //nolint:gosec // A request has room for fewer.
	if m.Object == nil {
		return meta
	}
	kind := m.Object.GroupVersionKind()
	meta.Group, meta.Version, meta.Kind = kind.Group, kind.Version, kind.Kind
	meta.Namespace, meta.Name = m.Object.GetNamespace(), m.Object.GetName()
	if mapping == nil {
		return meta
	}
	meta.Resource = mapping.Resource.Resource
	if mapping.Scope.Name() != apimeta.RESTScopeNameNamespace {
		meta.Namespace = ""
	}
	return meta
}

// Identifier returns the part of a reference by which a work's manifestConfigs and
// orphaningRules name the resource.
func Identifier(meta workv1.ManifestResourceMeta) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Group: meta.Group, Resource: meta.Resource, Name: meta.Name, Namespace: meta.Namespace}
}
