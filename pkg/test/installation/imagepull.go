package installation

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
)

// ImagePull gives the ServiceAccount of the image pull secret controller the
// permissions that are installed with it, for some values, and makes its namespace.
func ImagePull(tb testing.TB, admin client.Client, values manifests.ImagePull) {
	tb.Helper()
	objects, err := manifests.RenderImagePull(values)
	if err != nil {
		tb.Fatal(err)
	}
	Apply(tb, admin, "ocm.test", slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().Group != rbacv1.GroupName && object.GetKind() != "Namespace"
	}))
}
