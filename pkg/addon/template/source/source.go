package source

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Source is the source of an add-on.
type Source struct {
	// Template is the spec of its AddOnTemplate.
	Template *addonv1alpha1.AddOnTemplateSpec
	// Config is the spec of its AddOnDeploymentConfig, empty without one.
	Config addonv1beta1.AddOnDeploymentConfigSpec
}

// Namespace is where the agent is installed: its Pods find their credentials there. The
// annotation for v1alpha1's installNamespace has no effect.
// See docs/reference/wire-contract.md#addon-templates.
func (s *Source) Namespace() string {
	return cmp.Or(s.Config.AgentInstallNamespace, s.namespaceOf("Deployment"), s.namespaceOf("DaemonSet"), names.AddOnNamespace)
}

// namespaceOf returns the namespace of the first workload of a kind in the template, "" if
// there is none.
func (s *Source) namespaceOf(kind string) string {
	for _, m := range s.Template.AgentSpec.Workload.Manifests {
		var object metav1.PartialObjectMetadata
		if json.Unmarshal(m.Raw, &object) != nil {
			continue // Rendering it reports the error.
		}
		if gvk := object.GroupVersionKind(); gvk.Group == appsv1.GroupName && gvk.Kind == kind {
			return object.Namespace
		}
	}
	return ""
}

// Of returns what an add-on is made from, nil as long as its status names no template or
// one of the configurations does not exist in the version that the status names.
func Of(ctx context.Context, reader client.Reader, addOn *addonv1beta1.ManagedClusterAddOn) (*Source, error) {
	s := &Source{}
	for _, r := range addOn.Status.ConfigReferences {
		if addonconfig.Read(r.ConfigGroupResource) == nil || r.DesiredConfig == nil {
			continue
		}
		var into any = &s.Config
		if r.ConfigGroupResource == addonconfig.Templates() {
			s.Template = &addonv1alpha1.AddOnTemplateSpec{}
			into = s.Template
		}
		hash, err := read(ctx, reader, r, into)
		if err != nil || hash == "" || hash != r.DesiredConfig.SpecHash {
			return nil, err
		}
	}
	if s.Template == nil {
		return nil, nil //nolint:nilnil // An add-on without a template is not made from anything.
	}
	return s, nil
}

// Template returns the spec of the AddOnTemplate that the status of an add-on names, in
// its current version, nil if there is none.
func Template(ctx context.Context, reader client.Reader, addOn *addonv1beta1.ManagedClusterAddOn) (*addonv1alpha1.AddOnTemplateSpec, error) {
	for _, r := range addOn.Status.ConfigReferences {
		if r.ConfigGroupResource != addonconfig.Templates() || r.DesiredConfig == nil {
			continue
		}
		var spec addonv1alpha1.AddOnTemplateSpec
		if hash, err := read(ctx, reader, r, &spec); err != nil || hash == "" {
			return nil, err
		}
		return &spec, nil
	}
	return nil, nil //nolint:nilnil // See Of.
}

// read decodes the spec of a configuration and returns its hash, "" if it does not exist.
func read(ctx context.Context, reader client.Reader, r addonv1beta1.ConfigReference, into any) (string, error) {
	object := addonconfig.Read(r.ConfigGroupResource)
	err := reader.Get(ctx, client.ObjectKey{Namespace: r.DesiredConfig.Namespace, Name: r.DesiredConfig.Name}, object)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	hash, err := addonconfig.Hash(object)
	if err != nil {
		return "", err
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into); err != nil {
		return "", fmt.Errorf("%s: %w", addonconfig.Describe(r.ConfigGroupResource, r.DesiredConfig.ConfigReferent), err)
	}
	return hash, nil
}
