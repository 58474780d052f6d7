package inventory

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	workv1 "open-cluster-management.io/api/work/v1"
)

// OwnerKind is the kind of the owner references of applied objects.
const OwnerKind = "AppliedManifestWork"

// Key identifies an object. Without a name it stands for every object of the resource.
type Key struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// Object is the part of an object that the inventory stores.
type Object struct {
	UID             types.UID
	ResourceVersion string
	// Revision differs when anything but the status may have changed.
	Revision uint64
	// Owners are the AppliedManifestWorks that own the object.
	Owners []types.UID
	// Deleting is true while finalizers delay the deletion.
	Deleting bool
}

// OwnedBy reports whether an AppliedManifestWork is among the owners.
func (o Object) OwnedBy(owner types.UID) bool { return slices.Contains(o.Owners, owner) }

// Of returns what is kept of an object.
func Of(object metav1.Object) Object {
	o := Object{
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Deleting:        object.GetDeletionTimestamp() != nil,
	}
	var owners []types.UID
	for _, reference := range object.GetOwnerReferences() {
		owners = append(owners, reference.UID)
		if IsOwner(reference) {
			o.Owners = append(o.Owners, reference.UID)
		}
	}
	o.Revision = revision(object, owners)
	return o
}

// IsOwner reports whether a reference is to an AppliedManifestWork.
func IsOwner(reference metav1.OwnerReference) bool {
	return reference.Kind == OwnerKind && reference.APIVersion == workv1.GroupVersion.String()
}

// revision digests what changes with the content of an object. The generation of an
// object does not count changes of metadata, and objects that no controller reports a
// status of have none. Metadata and whole objects must digest to the same.
func revision(object metav1.Object, owners []types.UID) uint64 {
	content := []any{object.GetUID(), object.GetResourceVersion()}
	if generation := object.GetGeneration(); generation > 0 {
		content = []any{
			object.GetUID(), generation, presented(object.GetLabels()), presented(object.GetAnnotations()), owners,
			object.GetDeletionTimestamp() != nil,
		}
	}
	digest := fnv.New64a()
	_ = json.NewEncoder(digest).Encode(content) // Strings and numbers always encode, and a hash never fails to write.
	return digest.Sum64()
}

// presented returns labels or annotations as metadata has them, nil if there are none,
// and without the annotation that follows the creation of every Deployment.
func presented(m map[string]string) map[string]string {
	const rollout = "deployment.kubernetes.io/revision"
	if _, ok := m[rollout]; ok {
		m = maps.Clone(m)
		delete(m, rollout)
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// older reports whether a resource version is older than another one. Versions that
// cannot be compared are not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
