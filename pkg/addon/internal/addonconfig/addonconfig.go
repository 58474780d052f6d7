package addonconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Kind is a kind of configuration.
type Kind = addonv1beta1.ConfigGroupResource

// DeploymentConfigs is the kind of AddOnDeploymentConfigs.
func DeploymentConfigs() Kind {
	return Kind{Group: addonv1beta1.GroupName, Resource: "addondeploymentconfigs"}
}

// Templates is the kind of AddOnTemplates.
func Templates() Kind {
	return Kind{Group: addonv1beta1.GroupName, Resource: names.ResourceAddOnTemplates}
}

// Read returns an empty object to read a configuration of a kind into, nil for a kind
// that only the add-on's own manager knows. It has the fields that a user wrote, without
// those that a Go type adds, to have the hash that every other party computes.
func Read(kind Kind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	switch kind {
	case DeploymentConfigs():
		object.SetGroupVersionKind(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("AddOnDeploymentConfig"))
	case Templates():
		object.SetGroupVersionKind(schema.GroupVersion(addonv1alpha1.GroupVersion).WithKind("AddOnTemplate"))
	default:
		return nil
	}
	return object
}

// KindOf is the inverse of Read.
func KindOf(object schema.ObjectKind) Kind {
	if object.GroupVersionKind().Kind == "AddOnTemplate" {
		return Templates()
	}
	return DeploymentConfigs()
}

// Hash is the SHA-256, in hex, of everything in a configuration but its kind, metadata
// and status, as JSON with sorted keys.
func Hash(object *unstructured.Unstructured) (string, error) {
	content := make(map[string]any, 1)
	for field, value := range object.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[field] = value
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Managed reports whether a ClusterManagementAddOn leaves its add-ons to the add-on
// manager.
func Managed(cma *addonv1beta1.ClusterManagementAddOn) bool {
	lifecycle, ok := cma.Annotations[names.AnnotationAddOnLifecycle]
	return cma.DeletionTimestamp == nil && (!ok || lifecycle == "" || lifecycle == names.AddOnLifecycleManager)
}

// Templated reports whether the add-ons of a ClusterManagementAddOn are made from
// AddOnTemplates.
func Templated(cma *addonv1beta1.ClusterManagementAddOn) bool {
	template := func(c addonv1beta1.AddOnConfig) bool { return c.ConfigGroupResource == Templates() }
	return slices.ContainsFunc(cma.Spec.DefaultConfigs, template) ||
		slices.ContainsFunc(cma.Spec.InstallStrategy.Placements, func(s addonv1beta1.PlacementStrategy) bool {
			return slices.ContainsFunc(s.Configs, template)
		})
}

// Hashes returns the hashes of the configurations that an add-on is to have, by
// resource, group, namespace and name, as the annotation config-spec-hash of its
// ManifestWorks has them.
// See docs/reference/wire-contract.md#addon-works.
func Hashes(references []addonv1beta1.ConfigReference) map[string]string {
	hashes := make(map[string]string, len(references))
	for _, r := range references {
		if r.DesiredConfig == nil {
			continue
		}
		resource := r.Resource
		if r.Group != "" {
			resource += "." + r.Group
		}
		hashes[fmt.Sprintf("%s/%s/%s", resource, r.DesiredConfig.Namespace, r.DesiredConfig.Name)] = r.DesiredConfig.SpecHash
	}
	return hashes
}

// Describe names a configuration in a message.
func Describe(kind Kind, r addonv1beta1.ConfigReferent) string {
	return fmt.Sprintf("%s.%s %s", kind.Resource, kind.Group, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}
