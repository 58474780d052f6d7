package hub_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// install applies what the operator applies before it starts the hub's
// controllers: the CRDs, the rights of the controllers and the admission rules.
func (e *env) install(t *testing.T) {
	t.Helper()
	values := manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: "0.0.0"}
	applier := &apply.Applier{Client: e.admin, FieldManager: "ocm.test"}
	for _, render := range []func(manifests.Hub) ([]*unstructured.Unstructured, error){
		manifests.RenderHubCRDs, manifests.RenderHubBase, manifests.RenderHubAdmission,
	} {
		objs, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		list := make([]client.Object, len(objs))
		for i := range objs {
			list[i] = objs[i]
		}
		if _, err := applier.Apply(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
	}
}
