package manifests_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// enum is a field of which only some values mean something to our components.
type enum struct {
	apiVersion, kind string
	// field is as the API server names it, and body has VALUE in its place.
	field, body string
	// status says that the field is in the status.
	status bool
	values []string
}

// enums are the fields that decide how an identity is obtained and what it is
// good for.
func enums() []enum {
	const (
		addOns    = "addon.open-cluster-management.io/"
		clusters  = "cluster.open-cluster-management.io/"
		operators = "operator.open-cluster-management.io/v1"
	)
	return []enum{
		{
			apiVersion: addOns + "v1beta1", kind: "ManagedClusterAddOn", status: true, values: []string{"csr", "token"},
			field: "status.registrations[0].kubeClient.driver", body: "status: {registrations: [{type: kubeClient, kubeClient: {driver: VALUE}}]}",
		},
		{
			apiVersion: addOns + "v1beta1", kind: "ManagedClusterAddOn", status: true, values: []string{"kubeClient", "customSigner"},
			field: "status.registrations[0].type", body: "status: {registrations: [{type: VALUE, kubeClient: {}, customSigner: {signerName: a.b/c}}]}",
		},
		{
			apiVersion: addOns + "v1alpha1", kind: "ManagedClusterAddOn", status: true, values: []string{"csr", "token"},
			field: "status.kubeClientDriver", body: "status: {kubeClientDriver: VALUE}",
		},
		{
			apiVersion: addOns + "v1beta1", kind: "ClusterManagementAddOn", values: []string{"Manual", "Placements"},
			field: "spec.installStrategy.type", body: "spec: {installStrategy: {type: VALUE}}",
		},
		{
			apiVersion: clusters + "v1", kind: "ManagedCluster", values: []string{"NoSelect", "PreferNoSelect", "NoSelectIfNew"},
			field: "spec.taints[0].effect", body: "spec: {taints: [{key: a, effect: VALUE}]}",
		},
		{
			apiVersion: clusters + "v1beta2", kind: "ManagedClusterSet", values: []string{"ExclusiveClusterSetLabel", "LabelSelector"},
			field: "spec.clusterSelector.selectorType", body: "spec: {clusterSelector: {selectorType: VALUE}}",
		},
		{
			apiVersion: operators, kind: "ClusterManager", values: []string{"csr", "awsirsa", "grpc"},
			field: "spec.registrationConfiguration.registrationDrivers[0].authType", body: "spec: {registrationConfiguration: {registrationDrivers: [{authType: VALUE}]}}",
		},
		{
			apiVersion: operators, kind: "ClusterManager", values: []string{"Enable", "Disable"},
			field: "spec.registrationConfiguration.featureGates[0].mode", body: "spec: {registrationConfiguration: {featureGates: [{feature: a, mode: VALUE}]}}",
		},
		{
			apiVersion: operators, kind: "ClusterManager", values: []string{"Default", "Hosted"},
			field: "spec.deployOption.mode", body: "spec: {deployOption: {mode: VALUE}}",
		},
		{
			apiVersion: operators, kind: "Klusterlet", values: []string{"csr", "awsirsa", "grpc"},
			field: "spec.registrationConfiguration.registrationDriver.authType", body: "spec: {registrationConfiguration: {registrationDriver: {authType: VALUE}}}",
		},
		{
			apiVersion: operators, kind: "Klusterlet", values: []string{"csr", "token"},
			field: "spec.registrationConfiguration.addOnKubeClientRegistrationDriver.authType", body: "spec: {registrationConfiguration: {addOnKubeClientRegistrationDriver: {authType: VALUE}}}",
		},
		{
			apiVersion: operators, kind: "Klusterlet", values: []string{"Enable", "Disable"},
			field: "spec.registrationConfiguration.featureGates[0].mode", body: "spec: {registrationConfiguration: {featureGates: [{feature: a, mode: VALUE}]}}",
		},
		{
			apiVersion: "tokenexchange.open-cluster-management.io/v1alpha1", kind: "TokenExchangePolicy", values: []string{"RSA", "EC"},
			field: "spec.keys.jwks.keys[0].kty", body: "spec: {keys: {jwks: {keys: [{kty: VALUE, kid: a}]}}}",
		},
	}
}

// TestUnknownValuesAreRefused expects an API server with our CRDs to refuse
// every value but the known ones, so that a component need not guess.
func TestUnknownValuesAreRefused(t *testing.T) {
	t.Parallel()
	admin := controlplane.Lease(t).Client(t)
	for _, render := range []func() ([]*unstructured.Unstructured, error){
		golden()["hub-operator"], golden()["klusterlet-operator"], func() ([]*unstructured.Unstructured, error) { return manifests.RenderHubCRDs(tokenAuthorizer()) },
	} {
		crds, err := render()
		for _, crd := range crds {
			// The webhook between the versions is no part of this test.
			unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
		}
		installation.Some(t, admin, crds, err, installation.CRD)
	}
	for _, e := range enums() {
		t.Run(e.kind+"/"+e.field, func(t *testing.T) {
			t.Parallel()
			for _, value := range e.values {
				if causes := e.write(t, admin, value); slices.ContainsFunc(causes, e.refuses) {
					t.Errorf("%s is refused: %v", value, causes)
				}
			}
			for _, value := range []string{"Unheard-of", e.values[0] + "s", `""`} {
				if causes := e.write(t, admin, value); !slices.ContainsFunc(causes, e.refuses) {
					t.Errorf("%s is not refused: %v", value, causes)
				}
			}
		})
	}
}

func (e enum) refuses(cause metav1.StatusCause) bool {
	return cause.Field == e.field && cause.Type == metav1.CauseTypeFieldValueNotSupported
}

// write asks the API server for a value without storing it, and returns what it
// has against the object.
func (e enum) write(t *testing.T, admin client.Client, value string) []metav1.StatusCause {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(e.body, "VALUE", value)), &content); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetAPIVersion(e.apiVersion)
	obj.SetKind(e.kind)
	obj.SetName("some")
	if namespaced, err := admin.IsObjectNamespaced(obj); err != nil {
		t.Fatal(err)
	} else if namespaced {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	var err error
	if e.status {
		status := obj.Object["status"]
		obj.SetName("")
		obj.SetGenerateName("some-")
		obj.Object["spec"] = map[string]any{}
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		obj.Object["status"] = status
		err = admin.Status().Update(t.Context(), obj, client.DryRunAll)
	} else {
		err = admin.Create(t.Context(), obj, client.DryRunAll)
	}
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	return refused.Status().Details.Causes
}
