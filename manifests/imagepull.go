package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RenderImagePull returns the objects of "pull-secrets install", in the order of
// applying them: the image pull secret controller is last.
func RenderImagePull(values ImagePull) ([]*unstructured.Unstructured, error) {
	objs, err := render("imagepull", values, roleArgs("imagepull", values.Controller.Args))
	return label(objs, map[string]string{names.LabelPartOf: names.PartOfImagePull}), err
}

// bindingView is the input of the template for the controller's bindings.
func bindingView(kind, name string) map[string]any {
	return map[string]any{"Kind": kind, "Name": name, "Names": imagePullNames()}
}
