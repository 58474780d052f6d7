package conversion_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// TestSchemas compares the versions of our CRDs: whatever one has and the other
// has not must be converted. A new release of the API that brings another such
// field fails here.
func TestSchemas(t *testing.T) {
	t.Parallel()
	want := map[string][2][]string{
		"managedclusteraddons." + conversion.Group: {
			{
				"spec.installNamespace", "status.addOnConfiguration", "status.configReferences[].name",
				"status.configReferences[].namespace", "status.kubeClientDriver",
				"status.registrations[].signerName", "status.registrations[].subject",
			},
			{
				"status.registrations[].customSigner", "status.registrations[].kubeClient", "status.registrations[].type",
			},
		},
		"clustermanagementaddons." + conversion.Group: {
			{"spec.addOnConfiguration", "spec.supportedConfigs", "status.defaultconfigReferences"},
			{"spec.defaultConfigs", "status.defaultConfigReferences"},
		},
	}
	for _, name := range conversion.CRDs() {
		versions := fields(t, name)
		onlyAlpha := without(versions[conversion.V1alpha1], versions[conversion.V1beta1])
		onlyBeta := without(versions[conversion.V1beta1], versions[conversion.V1alpha1])
		if diff := cmp.Diff(want[name], [2][]string{onlyAlpha, onlyBeta}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// fields are the paths of the fields of a CRD, by version.
func fields(t *testing.T, name string) map[string][]string {
	t.Helper()
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Namespace: names.HubNamespace})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, rendered := range crds {
		if rendered.GetName() != name {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.Object, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			out[version.Name] = paths("", version.Schema.OpenAPIV3Schema)
		}
	}
	return out
}

func paths(prefix string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for name, child := range schema.Properties {
		out = append(out, prefix+name)
		out = append(out, paths(prefix+name+".", &child)...)
		if child.Items != nil && child.Items.Schema != nil {
			out = append(out, paths(prefix+name+"[].", child.Items.Schema)...)
		}
	}
	return out
}

// without returns what is in one list and not in another, and nothing below it.
func without(list, other []string) []string {
	missing := slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(path string) bool { return slices.Contains(other, path) })
	var out []string
	for _, path := range missing {
		below := func(parent string) bool {
			return len(path) > len(parent) && path[:len(parent)] == parent && (path[len(parent)] == '.' || path[len(parent)] == '[')
		}
		if !slices.ContainsFunc(out, below) {
			out = append(out, path)
		}
	}
	return out
}
