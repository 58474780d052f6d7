package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RenderKlusterletOperator returns what join installs, in the order in which it
// can be applied: the CRD of the Klusterlet first and the Klusterlet last.
func RenderKlusterletOperator(values KlusterletOperator) ([]*unstructured.Unstructured, error) {
	if values.Spec.Namespace == "" {
		return nil, errNamespace
	}
	if values.Name == "" {
		values.Name = names.KlusterletName
	}
	objs, err := crds("klusterlet-operator", values.Version)
	if err != nil {
		return nil, err
	}
	rendered, err := render("klusterlet-operator", values, operatorArgs("klusterlet", values.Operator.Image))
	return append(objs, rendered...), err
}

// RenderKlusterletCRDs returns the CRDs of a managed cluster.
func RenderKlusterletCRDs(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := crds("managed", values.Version)
	return label(objs, values.Labels), err
}

// RenderKlusterletBase returns the agents' namespaces and the identities and
// rights in them.
func RenderKlusterletBase(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := render("klusterlet", values, nil)
	return label(objs, values.Labels), err
}

// RenderKlusterletRuntime returns the Deployments of the agents.
func RenderKlusterletRuntime(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := render("klusterlet-runtime", values, roleArgs("spoke", values.RegistrationArgs))
	return label(objs, values.Labels), err
}
