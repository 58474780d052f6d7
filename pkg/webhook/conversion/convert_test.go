package conversion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
)

// read reads a ManagedClusterAddOn, or a ClusterManagementAddOn if it says so.
func read(t *testing.T, gv schema.GroupVersion, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	if obj.GetKind() == "" {
		obj.SetKind("ManagedClusterAddOn")
	}
	obj.SetAPIVersion(gv.String())
	return obj
}

// pairs are objects in both versions: everything that has a place in both.
func pairs() map[string][2]string {
	return map[string][2]string{
		"install namespace": {
			`{metadata: {name: a}, spec: {installNamespace: here}}`,
			`{metadata: {name: a, annotations: {` + names.AnnotationInstallNamespace + `: here}}, spec: {}}`,
		},
		"registrations and driver": {
			`{spec: {}, status: {kubeClientDriver: token, registrations: [
			  {signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, groups: [g]}},
			  {signerName: example.com/s, subject: {user: v, organizationUnit: [o]}}]}}`,
			`{spec: {}, status: {registrations: [
			  {type: kubeClient, kubeClient: {driver: token, subject: {user: u, groups: [g]}}},
			  {type: customSigner, customSigner: {signerName: example.com/s, subject: {user: v, organizationUnits: [o]}}}]}}`,
		},
		"one driver for all": {
			`{spec: {}, status: {kubeClientDriver: csr, registrations: [
			  {signerName: kubernetes.io/kube-apiserver-client, subject: {user: u}},
			  {signerName: kubernetes.io/kube-apiserver-client, subject: {user: v}}]}}`,
			`{spec: {}, status: {registrations: [
			  {type: kubeClient, kubeClient: {driver: csr, subject: {user: u}}},
			  {type: kubeClient, kubeClient: {driver: csr, subject: {user: v}}}]}}`,
		},
		"config references": {
			`{spec: {}, status: {configReferences: [{group: g, resource: r, name: nn, namespace: s, desiredConfig: {name: nn, namespace: s, specHash: h}}]}}`,
			`{spec: {}, status: {configReferences: [{group: g, resource: r, desiredConfig: {name: nn, namespace: s, specHash: h}}]}}`,
		},
		"default configs": {
			`{kind: ClusterManagementAddOn, spec: {supportedConfigs: [{group: g, resource: r, defaultConfig: {name: nn, namespace: s}}, {group: g, resource: q}]},
			  status: {defaultconfigReferences: [{group: g, resource: r}]}}`,
			`{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{group: g, resource: r, name: nn, namespace: s}, {group: g, resource: q, name: __reserved_no_default__}]},
			  status: {defaultConfigReferences: [{group: g, resource: r}]}}`,
		},
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := read(t, alpha, pair[0]), read(t, beta, pair[1])
			if diff := cmp.Diff(b.Object, convert(t, a).Object); diff != "" {
				t.Errorf("to v1beta1 (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(a.Object, convert(t, b).Object); diff != "" {
				t.Errorf("to v1alpha1 (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	kubeSigner = "kubernetes.io/kube-apiserver-client"
	// units are organization units that v1beta1 has no place for.
	units = `{signerName: ` + kubeSigner + `, subject: {user: u, organizationUnit: [o]}}`
)

// edits are objects that somebody reads in the other version, changes there and
// writes back.
func edits() map[string]struct {
	from         schema.GroupVersion
	before, want string
	edit         func(other map[string]any) error
} {
	type edit = func(map[string]any) error
	status := func(key string, value any) edit {
		return func(obj map[string]any) error { return unstructured.SetNestedField(obj, value, "status", key) }
	}
	return map[string]struct {
		from         schema.GroupVersion
		before, want string
		edit         edit
	}{
		"what only v1alpha1 knows outlasts a change of something else": {
			from:   alpha,
			before: `{spec: {installNamespace: x}, status: {addOnConfiguration: {crName: c}, registrations: [` + units + `], configReferences: [{group: g, resource: r, name: old, lastObservedGeneration: 3}]}}`,
			want:   `{spec: {installNamespace: x}, status: {namespace: yy, addOnConfiguration: {crName: c}, registrations: [` + units + `], configReferences: [{group: g, resource: r, name: old, lastObservedGeneration: 3}]}}`,
			edit:   status("namespace", "yy"),
		},
		"a changed subject loses its units": {
			from: alpha, before: `{spec: {}, status: {registrations: [` + units + `]}}`,
			want: `{spec: {}, status: {registrations: [{signerName: ` + kubeSigner + `, subject: {user: new}}]}}`,
			edit: status("registrations", []any{map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"subject": map[string]any{"user": "new"}}}}),
		},
		"an added entry leaves the others alone, the driver is nobody's loss": {
			from: alpha, before: `{spec: {}, status: {registrations: [` + units + `]}}`,
			want: `{spec: {}, status: {kubeClientDriver: token, registrations: [{signerName: a.b/c}, ` + units + `]}}`,
			edit: status("registrations", []any{
				map[string]any{"type": "customSigner", "customSigner": map[string]any{"signerName": "a.b/c"}},
				map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"driver": "token", "subject": map[string]any{"user": "u"}}},
			}),
		},
		"a driver without a registration is replaced by that of one": {
			from: alpha, before: `{spec: {}, status: {kubeClientDriver: token}}`,
			want: `{spec: {}, status: {kubeClientDriver: csr, registrations: [{signerName: ` + kubeSigner + `}]}}`,
			edit: status("registrations", []any{map[string]any{"type": "kubeClient", "kubeClient": map[string]any{"driver": "csr"}}}),
		},
		"a reference to another configuration has its name": {
			from: alpha, before: `{spec: {}, status: {configReferences: [{group: g, resource: r, name: old}]}}`,
			want: `{spec: {}, status: {configReferences: [{group: g, resource: r, name: new, desiredConfig: {name: new}}]}}`,
			edit: status("configReferences", []any{map[string]any{"group": "g", "resource": "r", "desiredConfig": map[string]any{"name": "new"}}}),
		},
		"the install namespace is changed through its annotation": {
			from: alpha, before: `{spec: {installNamespace: old}}`, want: `{spec: {installNamespace: new}}`,
			edit: func(obj map[string]any) error {
				return unstructured.SetNestedField(obj, "new", "metadata", "annotations", names.AnnotationInstallNamespace)
			},
		},
		"a second driver outlasts a change of the first": {
			from: beta,
			before: `{spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {driver: token, subject: {user: u}}},
			  {type: kubeClient, kubeClient: {subject: {user: u}}}]}}`,
			want: `{spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {driver: csr, subject: {user: u}}},
			  {type: kubeClient, kubeClient: {subject: {user: u}}}]}}`,
			edit: status("kubeClientDriver", "csr"),
		},
		"a type that only v1beta1 knows outlasts a change of something else": {
			from: beta, before: `{spec: {}, status: {registrations: [{type: later, later: {x: z}}]}}`,
			want: `{spec: {}, status: {namespace: nn, registrations: [{type: later, later: {x: z}}]}}`,
			edit: status("namespace", "nn"),
		},
		"a default that is taken away is none": {
			from:   beta,
			before: `{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{group: g, resource: r, name: nn}]}}`,
			want:   `{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{group: g, resource: r, name: __reserved_no_default__}]}}`,
			edit: func(obj map[string]any) error {
				return unstructured.SetNestedSlice(obj, []any{map[string]any{"group": "g", "resource": "r"}}, "spec", "supportedConfigs")
			},
		},
		"a lost annotation loses only what it carried": {
			from: beta, before: `{spec: {}, status: {registrations: [{type: customSigner, customSigner: {signerName: ` + kubeSigner + `, subject: {user: u}}}]}}`,
			want: `{spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {subject: {user: u}}}]}}`,
			edit: func(obj map[string]any) error {
				unstructured.RemoveNestedField(obj, "metadata", "annotations")
				return nil
			},
		},
	}
}

func TestEditedInBetween(t *testing.T) {
	t.Parallel()
	for name, test := range edits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := convert(t, read(t, test.from, test.before))
			if err := test.edit(there.Object); err != nil {
				t.Fatal(err)
			}
			back, want := convert(t, there), read(t, test.from, test.want)
			// Carriers and the annotation of the install namespace aside.
			delete(back.Object, "metadata")
			if diff := cmp.Diff(want.Object, back.Object); diff != "" {
				t.Errorf("(-want +got):\n%s\nin between:\n%s", diff, dump(t, there.Object))
			}
		})
	}
}

// TestCarriersAreInvisible looks at what a user sees who has nothing to do with
// the other version.
func TestCarriersAreInvisible(t *testing.T) {
	t.Parallel()
	for name, test := range edits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := read(t, test.from, test.before)
			back := convert(t, convert(t, obj))
			if got := back.GetAnnotations(); len(got) != 0 {
				t.Errorf("annotations %v", got)
			}
		})
	}
	for name, pair := range pairs() {
		if got := convert(t, read(t, alpha, pair[0])).GetAnnotations()[names.AnnotationCarriesV1alpha1]; got != "" {
			t.Errorf("%s: carries %s without need", name, got)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, field string
	}{
		"spec":              {`{spec: x}`, "spec"},
		"status":            {`{spec: {}, status: []}`, "status"},
		"install namespace": {`{spec: {installNamespace: 7}}`, "spec.installNamespace"},
		"list":              {`{spec: {}, status: {registrations: {}}}`, "status.registrations"},
		"entry":             {`{spec: {}, status: {configReferences: [{}, 7]}}`, "status.configReferences[1]"},
		"metadata":          {`{metadata: 7, spec: {}}`, "metadata"},
		"annotations":       {`{metadata: {annotations: []}, spec: {}}`, "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := conversion.Convert(read(t, alpha, test.text), beta)
			if err == nil || !strings.HasPrefix(err.Error(), test.field+" is ") {
				t.Errorf("got %v, want an error about %s", err, test.field)
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind     string
		from, to schema.GroupVersion
	}{
		"kind":       {"AddOnTemplate", alpha, beta},
		"to":         {"ManagedClusterAddOn", alpha, schema.GroupVersion{Group: conversion.Group, Version: "v1"}},
		"from":       {"ManagedClusterAddOn", schema.GroupVersion{Group: conversion.Group, Version: "v1"}, beta},
		"group":      {"ManagedClusterAddOn", schema.GroupVersion{Group: "apps", Version: "v1alpha1"}, beta},
		"into group": {"ManagedClusterAddOn", alpha, schema.GroupVersion{Group: "apps", Version: "v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := read(t, test.from, `{kind: `+test.kind+`, spec: {}}`)
			if err := errOf(conversion.Convert(obj, test.to)); err == nil || !strings.Contains(err.Error(), "cannot be converted to") {
				t.Errorf("got %v", err)
			}
		})
	}
	same := read(t, beta, `{spec: {}}`)
	if out, err := conversion.Convert(same, beta); err != nil || out == same || !cmp.Equal(out, same) {
		t.Errorf("to its own version: %v, %v", out, err)
	}
}

func errOf(_ any, err error) error { return err }
