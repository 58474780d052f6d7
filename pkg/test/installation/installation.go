package installation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// CRD is the kind of a CustomResourceDefinition, for Some.
const CRD = "CustomResourceDefinition"

// patience is far above what serving a CRD takes: the machine may be busy.
const patience = 90 * time.Second

// Hub applies what the operator applies before it starts the hub's controllers:
// the CRDs, the rights of the controllers and the admission rules. Components
// that values lacks are not installed.
func Hub(tb testing.TB, admin client.Client, values manifests.Hub) {
	tb.Helper()
	values.Name, values.Namespace, values.Version = names.ClusterManagerName, names.HubNamespace, "0.0.0"
	if values.IdentityAnnotations == nil {
		values.IdentityAnnotations = drivers.All().Annotations()
	}
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

// applying is locked while objects are applied: tests that run at the same time share
// permissions.
var applying sync.Mutex //nolint:gochecknoglobals // every test of a process shares it

// Apply applies objects as a field manager.
func Apply(tb testing.TB, admin client.Client, fieldManager string, objs []*unstructured.Unstructured) {
	tb.Helper()
	applying.Lock()
	defer applying.Unlock()
	applier := &apply.Applier{Client: admin, FieldManager: fieldManager}
	if _, err := applier.Apply(tb.Context(), apply.Objects(objs)...); err != nil {
		tb.Fatal(err)
	}
}

// Some creates those objects of a rendering, with its error, that are of the
// given kinds, unless they are there, and waits until CRDs are served. Tests that
// share a control plane use it for what they have in common.
func Some(tb testing.TB, admin client.Client, objs []*unstructured.Unstructured, err error, kinds ...string) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	for _, obj := range objs {
		if !slices.Contains(kinds, obj.GetKind()) {
			continue
		}
		Create(tb, admin, obj)
		if obj.GetKind() == CRD {
			awaitServed(tb, admin, obj.GetName())
		}
	}
}

// Create creates objects unless they are there.
func Create(tb testing.TB, admin client.Client, objects ...client.Object) {
	tb.Helper()
	for _, object := range objects {
		if err := admin.Create(tb.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatal(err)
		}
	}
}

// awaitServed waits until the client finds the kind of a CRD. The API server
// establishes a CRD before it lists its kind, and a client uses the list.
func awaitServed(tb testing.TB, admin client.Client, name string) {
	tb.Helper()
	await.Success(tb, patience, "CRD "+name+" is served", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := admin.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		if !slices.ContainsFunc(crd.Status.Conditions, established) {
			return fmt.Errorf("conditions %+v", crd.Status.Conditions)
		}
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			if _, err := admin.RESTMapper().RESTMapping(kind, version.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

func established(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
}
