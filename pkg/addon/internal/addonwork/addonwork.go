package addonwork

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// indexAddOn finds works by the add-on that they are for.
const indexAddOn = "addon"

// Selector selects the works of add-ons, for caches.
func Selector() labels.Selector {
	// Only an invalid key is an error.
	requirement, err := labels.NewRequirement(names.LabelAddOnName, selection.Exists, nil)
	if err != nil {
		return labels.Nothing()
	}
	return labels.NewSelector().Add(*requirement)
}

// Slim replaces the manifests of a work with their digests, and drops what the add-on manager does not read.
func Slim(in any) (any, error) {
	work, ok := in.(*workv1.ManifestWork)
	if !ok {
		return in, nil
	}
	work.ManagedFields = nil
	Digest(work)
	for i := range work.Status.ResourceStatus.Manifests {
		work.Status.ResourceStatus.Manifests[i].Conditions = nil
	}
	return work, nil
}

// Digest replaces the manifests of a work with their hashes and the names of their objects.
func Digest(work *workv1.ManifestWork) {
	manifests := work.Spec.Workload.Manifests
	for i := range manifests {
		manifests[i].Raw = digest(manifests[i])
	}
}

// digest is a JSON string: the hash of a manifest, regardless of the order of keys and of
// fields that have no value, and the name of its object. A cache transforms some objects twice: what is a string is a
// digest already, because a manifest is an object.
func digest(m workv1.Manifest) []byte {
	raw := m.Raw
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return raw
	}
	var content map[string]any
	if json.Unmarshal(raw, &content) == nil {
		if sorted, err := json.Marshal(plain(content)); err == nil {
			raw = sorted
		}
	}
	sum := sha256.Sum256(raw)
	quoted, _ := json.Marshal(hex.EncodeToString(sum[:]) + " " + Object(m)) //nolint:errchkjson // A string is always encoded.
	return quoted
}

// plain returns an object without the empty fields that its encoding adds, such as an
// empty status or strategy of a Deployment: OCM's ManifestWorks have them and ours do
// not, so that ours would look changed after a takeover.
func plain(object map[string]any) map[string]any {
	var typed any
	switch (&unstructured.Unstructured{Object: object}).GroupVersionKind() {
	case appsv1.SchemeGroupVersion.WithKind("Deployment"):
		typed = &appsv1.Deployment{}
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet"):
		typed = &appsv1.DaemonSet{}
	default:
		return object
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed) != nil {
		return object
	}
	same, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return object
	}
	return same
}

// Object names the object of a manifest, or of its digest; "" if that is not known. The
// version of the kind does not matter: an object has several.
func Object(m workv1.Manifest) string {
	if bytes.HasPrefix(m.Raw, []byte(`"`)) {
		_, object, _ := strings.Cut(strings.Trim(string(m.Raw), `"`), " ")
		return object
	}
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(m.Raw, &object) != nil || object.Name == "" {
		return ""
	}
	kind := object.GroupVersionKind()
	return fmt.Sprintf("%s/%s/%s/%s", kind.Group, kind.Kind, object.Namespace, object.Name)
}

// Index lets List find works.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &workv1.ManifestWork{}, indexAddOn, func(object client.Object) []string {
		return []string{AddOn(object).String()}
	})
	if err != nil {
		return fmt.Errorf("index of the works of add-ons: %w", err)
	}
	return nil
}

// AddOn is the add-on that a work is for. The work of a hosted add-on is in the
// namespace of the cluster that hosts it.
func AddOn(work client.Object) types.NamespacedName {
	key := types.NamespacedName{Namespace: work.GetNamespace(), Name: work.GetLabels()[names.LabelAddOnName]}
	if namespace := work.GetLabels()[addonv1beta1.AddonNamespaceLabelKey]; namespace != "" {
		key.Namespace = namespace
	}
	return key
}

// List returns the works of an add-on without that which runs before its deletion. They
// are the cache's and must not be changed.
func List(ctx context.Context, reader client.Reader, addOn types.NamespacedName) ([]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	if err := reader.List(ctx, &list, client.MatchingFields{indexAddOn: addOn.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var works []*workv1.ManifestWork
	for i := range list.Items {
		if !strings.HasPrefix(list.Items[i].Name, names.AddOnPreDeleteWork(addOn.Name)) {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}

// Applied is the status of a condition of a work for its present spec, Unknown while the
// work agent has not reported one.
func Applied(work *workv1.ManifestWork, kind string) metav1.ConditionStatus {
	condition := apimeta.FindStatusCondition(work.Status.Conditions, kind)
	if condition == nil || condition.ObservedGeneration != work.Generation {
		return metav1.ConditionUnknown
	}
	return condition.Status
}

// MadeFor reports whether a work was made for configurations with these hashes.
func MadeFor(work *workv1.ManifestWork, hashes map[string]string) bool {
	recorded, ok := work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]
	if !ok {
		return len(hashes) == 0
	}
	var got map[string]string
	if json.Unmarshal([]byte(recorded), &got) != nil || len(got) != len(hashes) {
		return false
	}
	for key, hash := range hashes {
		if hash == "" || got[key] != hash {
			return false
		}
	}
	return true
}

// Progress admits updates of ManifestWorks that can change the progress of an add-on,
// in either direction.
func Progress() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Updates(func(before, after *workv1.ManifestWork) bool {
		key := workv1.ManifestConfigSpecHashAnnotationKey
		return before.Generation != after.Generation || before.Annotations[key] != after.Annotations[key] ||
			Applied(before, workv1.WorkApplied) != Applied(after, workv1.WorkApplied) ||
			Applied(before, workv1.WorkAvailable) != Applied(after, workv1.WorkAvailable)
	})}
}
