package manifests

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RenderHubOperator returns what init installs, in the order in which it can be
// applied: the CRD of the ClusterManager first and the ClusterManager last.
func RenderHubOperator(values HubOperator) ([]*unstructured.Unstructured, error) {
	objs, err := crds("hub-operator", values.Version)
	if err != nil {
		return nil, err
	}
	rendered, err := render("hub-operator", values, operatorArgs("clustermanager", values.Operator.Image, values.OperatorFlags...))
	return append(objs, rendered...), err
}

// RenderHubCRDs returns the CRDs of the hub: OCM's, and those of the token
// exchange, whether or not the hub has a token authorizer, so that disabling it
// retains the rules.
func RenderHubCRDs(values Hub) ([]*unstructured.Unstructured, error) {
	objs, err := crds("hub", values.Version)
	if err != nil {
		return nil, err
	}
	own, err := crds("tokenexchange", values.Version)
	if err != nil {
		return nil, err
	}
	objs = append(objs, own...)
	for _, obj := range objs {
		if err := setConversion(obj, values); err != nil {
			return nil, fmt.Errorf("conversion of %s: %w", obj.GetName(), err)
		}
	}
	return label(objs, values.Labels), nil
}

// setConversion sets the namespace and the CAs of the webhook in a CRD that it converts.
func setConversion(crd *unstructured.Unstructured, values Hub) error {
	client := []string{"spec", "conversion", "webhook", "clientConfig"}
	if _, found, err := unstructured.NestedMap(crd.Object, client...); err != nil || !found {
		return err
	}
	if err := unstructured.SetNestedField(crd.Object, values.Namespace, append(client, "service", "namespace")...); err != nil {
		return err
	}
	if len(values.WebhookCA) == 0 {
		return nil
	}
	return unstructured.SetNestedField(crd.Object, base64.StdEncoding.EncodeToString(values.WebhookCA), append(client, "caBundle")...)
}

// RenderHubBase returns the hub namespace and the identities and rights in it.
func RenderHubBase(values Hub) ([]*unstructured.Unstructured, error) {
	objs, err := render("hub", values, nil)
	return label(objs, values.Labels), err
}

// RenderHubAdmission returns the admission policies of the hub.
func RenderHubAdmission(values Hub) ([]*unstructured.Unstructured, error) {
	objs, err := render("hub-admission", values, nil)
	return label(objs, values.Labels), err
}

// RenderHubRuntime returns the Deployments of the hub.
func RenderHubRuntime(values Hub) ([]*unstructured.Unstructured, error) {
	// A cloud provider reads the annotations of a ServiceAccount when a pod is created.
	values.Registration.Annotations = values.RegistrationAnnotations
	objs, err := render("hub-runtime", values, roleArgs("hub", values.RegistrationArgs))
	return label(objs, values.Labels), err
}

// operatorArgs returns the arguments of an operator, with its own image, which the
// components run as well.
func operatorArgs(role, image string, flags ...string) []string {
	return roleArgs(role, append([]string{"--image=" + image}, flags...))
}

// roleArgs are the arguments of a role of our binary. Each pod binds to its own
// address, because pods of a local cluster share the host's network.
func roleArgs(role string, args []string) []string {
	return append([]string{"controller", role, "--bind-address=$(POD_IP)"}, args...)
}
