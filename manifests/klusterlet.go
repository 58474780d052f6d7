package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RenderKlusterletOperator returns the objects of join, in the order of applying them:
// the CRD of the Klusterlet is first. The bootstrap kubeconfig follows the Klusterlet:
// an agent registers as soon as it has one, with the Klusterlet's settings.
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
	rendered, err := render("klusterlet-operator", values, operatorArgs("klusterlet", values.Operator.Image, values.OperatorFlags...))
	return append(objs, rendered...), err
}

// RenderKlusterletCRDs returns the CRDs of a managed cluster.
func RenderKlusterletCRDs(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := crds("managed", values.Version)
	return label(objs, values.Labels), err
}

// RenderKlusterletBase returns the agents' namespaces, and the identity and rights
// of the registration agent.
func RenderKlusterletBase(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := render("klusterlet", values, nil)
	return label(objs, values.Labels), err
}

// RenderKlusterletRuntime returns the Deployment of the registration agent.
func RenderKlusterletRuntime(values Klusterlet) ([]*unstructured.Unstructured, error) {
	objs, err := render("klusterlet-runtime", values, roleArgs("agent", values.RegistrationArgs))
	return label(objs, values.Labels), err
}

// RenderKlusterletWork returns the work agent with its identity and rights, nothing
// when it is left out.
func RenderKlusterletWork(values Klusterlet) ([]*unstructured.Unstructured, error) {
	if values.Work == nil {
		return nil, nil
	}
	objs, err := render("klusterlet-work", values, roleArgs("work", values.Work.Args))
	return label(objs, values.Labels), err
}
