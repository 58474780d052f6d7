package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// RenderImagePull returns what "pull-secrets install" installs, in the order in
// which it can be applied: the image pull secret controller comes last.
func RenderImagePull(values ImagePull) ([]*unstructured.Unstructured, error) {
	if values.DockerConfig == nil {
		values.DockerConfig = []byte("{}")
	}
	objs, err := render("imagepull", values, roleArgs("imagepull", values.Controller.Args))
	return label(objs, map[string]string{names.LabelPartOf: names.PartOfImagePull}), err
}

// bindingView is what the template of the controller's bindings needs.
type bindingView struct {
	Kind  string
	Name  string
	Names imagePullNames
}

// newBindingView is called by the templates.
func newBindingView(kind, name string) bindingView {
	return bindingView{Kind: kind, Name: name, Names: newNameView().ImagePull}
}
