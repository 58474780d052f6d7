package imagepull_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/registry"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// TestServiceThatComesAndGoes: hosts that are configured need no Service; those of
// one are added when it is there and leave when it is deleted, not kept for ever.
func TestServiceThatComesAndGoes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := types.NamespacedName{Namespace: e.namespace, Name: "registry"}
	e.config.Lookup = registry.Lookup{ClusterDomain: "cluster.example", Services: []registry.Service{{NamespacedName: name, Port: 5000}}}
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "pull", Port: 5000}, {Name: "metrics", Port: 9090}}},
	}
	e.clock.Step(2 * time.Minute) // One token a minute is the most.
	e.create(t, service)
	dns := "registry." + e.namespace + ".svc"
	want := []string{host, dns + ":5000", dns + ".cluster.example:5000", service.Spec.ClusterIP + ":5000"}
	slices.Sort(want)
	e.settled(t, want, app)
	e.clock.Step(2 * time.Minute)
	if err := e.admin.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	e.settled(t, []string{host}, app)
}

// TestRestartTakesNoHostAway: a process that has not looked everything up yet leaves
// pull secrets as they are.
func TestRestartTakesNoHostAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := types.NamespacedName{Namespace: e.namespace, Name: "registries"}
	e.config.Lookup.ConfigMap = name
	e.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string]string{registry.Key: "a.example.com"}})
	app := e.account(t, "app")
	stop := e.start(t)
	e.settled(t, []string{"a.example.com", host}, app)
	stop()
	e.start(t)
	e.settled(t, []string{"a.example.com", host}, app, e.account(t, "marker"))
	if writes := e.writes.About("/secrets/app-"); len(writes) != 0 {
		t.Errorf("the other process writes %v", writes)
	}
}

// TestRoute: a cluster without Routes holds nothing up; the host of a Route is added
// once there is one.
func TestRoute(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.config.Lookup.Routes = []types.NamespacedName{{Namespace: e.namespace, Name: "registry"}}
	app := e.account(t, "app")
	e.start(t)
	e.settled(t, []string{host}, app)
	e.temporary(t, routes())
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": e.namespace, "name": "registry"},
		"status":   map[string]any{"ingress": []any{map[string]any{"host": "images.apps.example.com"}}},
	}}
	await.Success(t, patience, "the Route is made", func(ctx context.Context) error { return e.admin.Create(ctx, route.DeepCopy()) })
	await.Completion(t, patience, func(ctx context.Context) string {
		e.clock.Step(2 * time.Minute) // One more look.
		return e.missing(ctx, t, app, []string{"images.apps.example.com", host})
	})
}

// routes is OpenShift's kind as far as it is needed.
func routes() client.Object {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "routes.route.openshift.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "route.openshift.io",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Route", ListKind: "RouteList", Plural: "routes", Singular: "route"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}
