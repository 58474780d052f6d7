package manifests_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestAcceptedByAnAPIServer applies every rendering to a real API server, and
// again, which must find nothing to do: then what the API server stores is what
// was meant.
func TestAcceptedByAnAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	c, err := client.NewWithWatch(cp.Config(t), client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	applier := &apply.Applier{Client: c, FieldManager: "ocm.test"}
	crds := func(objs []*unstructured.Unstructured, err error) []*unstructured.Unstructured {
		if err != nil {
			t.Fatal(err)
		}
		return objs
	}
	applyTwice(t, applier, crds(manifests.RenderHubCRDs(hub())))
	applyTwice(t, applier, crds(manifests.RenderKlusterletCRDs(klusterlet())))
	for _, name := range []string{
		"hub-operator", "hub-operator-token", "klusterlet-operator", "klusterlet-operator-custom",
		"hub-base", "hub-base-token-authorizer", "hub-admission", "hub-runtime", "hub-runtime-custom", "hub-runtime-token-authorizer",
		"klusterlet-operator-work-admin", "klusterlet-work", "klusterlet-work-admin", "klusterlet-work-none",
		"klusterlet-base", "klusterlet-base-minimal", "klusterlet-runtime",
		"imagepull", "imagepull-namespaces",
	} {
		objs, err := golden()[name]()
		if err != nil {
			t.Fatal(err)
		}
		applyTwice(t, applier, objs)
	}
	expectTypeChecked(t, c)
}

func applyTwice(t *testing.T, applier *apply.Applier, objs []*unstructured.Unstructured) {
	t.Helper()
	list := make([]client.Object, len(objs))
	for i, obj := range objs {
		list[i] = obj
	}
	for range 2 {
		changes, err := applier.Apply(t.Context(), list...)
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != len(objs) {
			t.Fatalf("%d changes of %d objects", len(changes), len(objs))
		}
	}
	changes, err := applier.Apply(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		if change.Action != apply.Unchanged {
			t.Errorf("%s: %s when applied again", change.Object, change.Action)
		}
	}
}

// expectTypeChecked looks at what the API server's type checker says about the
// expressions of the policies.
func expectTypeChecked(t *testing.T, c client.Client) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("admissionregistration.k8s.io/v1")
	list.SetKind("ValidatingAdmissionPolicyList")
	if err := c.List(t.Context(), list); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Error("no policies")
	}
	for _, policy := range list.Items {
		warnings, _, err := unstructured.NestedSlice(policy.Object, "status", "typeChecking", "expressionWarnings")
		if err != nil {
			t.Fatal(err)
		}
		for _, warning := range warnings {
			t.Errorf("%s: %v", policy.GetName(), warning)
		}
	}
}
