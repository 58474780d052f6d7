package installation

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ImagePull gives a ServiceAccount the permissions that are installed with the image
// pull secret controller, for some values, and makes its namespace. With namespaces,
// the account is one of the test's own: others of the same control plane may have given
// that of the controller more.
func ImagePull(tb testing.TB, admin client.Client, values manifests.ImagePull, account string) {
	tb.Helper()
	objects, err := manifests.RenderImagePull(values)
	if err != nil {
		tb.Fatal(err)
	}
	for _, object := range objects {
		if len(values.Namespaces) > 0 && object.GetKind() == "RoleBinding" {
			object.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": names.ImagePullNamespace, "name": account}}
		}
	}
	Apply(tb, admin, "ocm.test", slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().Group != rbacv1.GroupName && object.GetKind() != "Namespace"
	}))
}
