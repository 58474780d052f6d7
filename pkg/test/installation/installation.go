package installation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Hub applies what the operator applies before it starts the hub's controllers:
// the CRDs, the rights of the controllers and the admission rules. Components
// that values lacks are not installed.
func Hub(tb testing.TB, admin client.Client, values manifests.Hub) {
	tb.Helper()
	values.Name, values.Namespace, values.Version = names.ClusterManagerName, names.HubNamespace, "0.0.0"
	for _, render := range []func(manifests.Hub) ([]*unstructured.Unstructured, error){
		manifests.RenderHubCRDs, manifests.RenderHubBase, manifests.RenderHubAdmission,
	} {
		objs, err := render(values)
		if err != nil {
			tb.Fatal(err)
		}
		Apply(tb, admin, "ocm.test", objs)
	}
}

// Apply applies objects as a field manager.
func Apply(tb testing.TB, admin client.Client, fieldManager string, objs []*unstructured.Unstructured) {
	tb.Helper()
	applier := &apply.Applier{Client: admin, FieldManager: fieldManager}
	if _, err := applier.Apply(tb.Context(), apply.Objects(objs)...); err != nil {
		tb.Fatal(err)
	}
}
