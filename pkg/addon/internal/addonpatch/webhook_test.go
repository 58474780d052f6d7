package addonpatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

func TestMain(m *testing.M) { controlplane.Main(m, &cp) }

var cp *controlplane.ControlPlane

const owner = client.FieldOwner("ocm.test")

// TestWritesNeedNoWebhook writes to an add-on that a client of v1alpha1 wrote
// before, while nothing converts between the versions.
func TestWritesNeedNoWebhook(t *testing.T) {
	t.Parallel()
	admin := cp.Client(t)
	key := writtenInAlpha(t, admin)
	now := clock.RealClock{}.Now()
	read := func() *addonv1beta1.ManagedClusterAddOn {
		t.Helper()
		addOn := &addonv1beta1.ManagedClusterAddOn{}
		if err := admin.Get(t.Context(), key, addOn); err != nil {
			t.Fatal(err)
		}
		return addOn
	}
	for _, kind := range []string{"Ours", "OursToo"} {
		want := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}
		if changed, err := addonpatch.SetConditions(t.Context(), admin, owner, read(), now, want); err != nil || !changed {
			t.Fatalf("%s: %t, %v", kind, changed, err)
		}
	}
	for _, kind := range []string{"Theirs", "Ours", "OursToo"} {
		if !apimeta.IsStatusConditionTrue(read().Status.Conditions, kind) {
			t.Errorf("%s is not there: %+v", kind, read().Status.Conditions)
		}
	}
	if err := addonpatch.Status(t.Context(), admin, owner, read(), map[string]any{"namespace": "n"}); err != nil {
		t.Error(err)
	}
	if err := addonpatch.Metadata(t.Context(), admin, owner, read(), map[string]any{"labels": map[string]any{"a": "b"}}); err != nil {
		t.Error(err)
	}
	if got := read(); got.Status.Namespace != "n" || got.Labels["a"] != "b" {
		t.Errorf("%+v", got)
	}
}

// writtenInAlpha makes an add-on and returns it once the webhook is needed to
// convert it and does not run.
func writtenInAlpha(t *testing.T, admin client.Client) client.ObjectKey {
	t.Helper()
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Namespace: names.HubNamespace})
	if err != nil {
		t.Fatal(err)
	}
	var crd *unstructured.Unstructured
	for _, rendered := range crds {
		if rendered.GetName() == "managedclusteraddons.addon.open-cluster-management.io" {
			crd = rendered
		}
	}
	converted := crd.DeepCopy()
	if err := unstructured.SetNestedMap(crd.Object, map[string]any{"strategy": "None"}, "spec", "conversion"); err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, admin, "ocm.test", []*unstructured.Unstructured{crd})
	alpha := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
		"metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": map[string]any{},
	}}
	key := client.ObjectKeyFromObject(alpha)
	if err := admin.Create(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	theirs := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Theirs","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))
	if err := admin.Status().Patch(t.Context(), alpha, theirs); err != nil {
		t.Fatal(err)
	}
	installation.Apply(t, admin, "ocm.test", []*unstructured.Unstructured{converted})
	await.Success(t, time.Minute, "the webhook is needed", func(ctx context.Context) error {
		if admin.Get(ctx, key, alpha) == nil {
			return errors.New("v1alpha1 can be read")
		}
		return nil
	})
	return key
}
