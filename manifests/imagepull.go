package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RenderImagePull returns what "pull-secrets install" installs, in the order in
// which it can be applied: the image pull secret controller comes last.
func RenderImagePull(values ImagePull) ([]*unstructured.Unstructured, error) {
	objs, err := render("imagepull", values, roleArgs("imagepull", values.Controller.Args))
	return label(objs, map[string]string{names.LabelPartOf: names.PartOfImagePull}), err
}

// bindingView is what the template of the controller's bindings needs.
func bindingView(kind, name string) map[string]any {
	return map[string]any{"Kind": kind, "Name": name, "Names": imagePullNames()}
}
