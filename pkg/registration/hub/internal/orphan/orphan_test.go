package orphan_test

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/orphan"
)

// TestListOfAKindThatWentAway detaches a cluster from a hub whose CRDs of add-ons and
// ManifestWorks are gone.
func TestListOfAKindThatWentAway(t *testing.T) {
	t.Parallel()
	resource := schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(resource.GroupVersion().WithKind("ManifestWork"), apimeta.RESTScopeNamespace)
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource.GroupResource(), "", "404 page not found", 0, true)
		},
	}).Build()
	items, err := orphan.Collector{Client: c, Live: c}.List(t.Context(), resource, "c1")
	if err != nil || len(items) != 0 {
		t.Errorf("got %v, %v", items, err)
	}
}
