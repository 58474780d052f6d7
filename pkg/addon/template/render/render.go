package render

import (
	"fmt"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Names of the variables that templates can use, which the containers of their workloads
// have in their environment as well. That of the namespace exists only where the
// AddOnDeploymentConfig sets it.
// See docs/reference/wire-contract.md#addon-templates.
const (
	variableCluster       = "CLUSTER_NAME"
	variableNamespace     = "INSTALL_NAMESPACE"
	variableHubKubeconfig = "HUB_KUBECONFIG"
)

// Values are the parameters of an AddOnTemplate for one cluster.
type Values struct {
	// AddOn and Cluster are names.
	AddOn, Cluster string
	// Namespace is the namespace of the agent.
	Namespace string
	// Config is the add-on's configuration.
	Config addonv1beta1.AddOnDeploymentConfigSpec
	// Registries are the cluster's, which those of the configuration override.
	Registries []addonv1beta1.ImageMirror
}

// Objects returns the manifests of a template in its order.
func Objects(spec *addonv1alpha1.AddOnTemplateSpec, values Values) ([]*unstructured.Unstructured, error) {
	preset, variables := variablesOf(spec, values)
	objects := make([]*unstructured.Unstructured, 0, len(spec.AgentSpec.Workload.Manifests)+1)
	for i := range spec.AgentSpec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(spec.AgentSpec.Workload.Manifests[i].Raw); err != nil {
			// The error of the decoder may quote the manifest.
			return nil, fmt.Errorf("manifest %d of the template is not a Kubernetes object", i)
		}
		object.Object, _ = fill(object.Object, variables).(map[string]any)
		objects = append(objects, object)
	}
	if bundle := proxyBundle(values); bundle != nil {
		objects = append(objects, bundle)
	}
	for i, object := range objects {
		if err := decorate(object, spec, values, preset); err != nil {
			return nil, fmt.Errorf("%s %s of manifest %d of the template: %w", object.GetKind(), object.GetName(), i, err)
		}
		if values.Config.AgentInstallNamespace != "" {
			move(object, values.Config.AgentInstallNamespace)
		}
	}
	return objects, nil
}

// variable is a name and a value.
type variable struct{ name, value string }

// variablesOf returns the variables that containers have, in a fixed order, and all that
// manifests may use.
func variablesOf(spec *addonv1alpha1.AddOnTemplateSpec, values Values) (preset []variable, all map[string]string) {
	all = map[string]string{}
	if len(spec.Registration) > 0 {
		all[variableHubKubeconfig] = hubKubeconfigPath + "/kubeconfig"
	}
	for _, v := range values.Config.CustomizedVariables {
		all[v.Name] = v.Value
	}
	// Variables of a configuration do not override these two.
	presets := []string{variableHubKubeconfig, variableCluster}
	all[variableCluster] = values.Cluster
	if values.Config.AgentInstallNamespace != "" {
		presets = append(presets, variableNamespace)
		all[variableNamespace] = values.Config.AgentInstallNamespace
	}
	for _, name := range presets {
		if value, ok := all[name]; ok {
			preset = append(preset, variable{name, value})
		}
	}
	return preset, all
}

// placeholder is a variable in a string. Other text in double braces, such as that of a
// template inside a ConfigMap, is no placeholder.
var placeholder = regexp.MustCompile(`\{\{\s*([a-zA-Z_][_a-zA-Z0-9]*)\s*\}\}`)

// fill replaces the placeholders in the strings of a JSON value, by nothing for
// variables that do not exist.
func fill(value any, variables map[string]string) any {
	switch v := value.(type) {
	case string:
		return expand(v, variables)
	case []any:
		for i := range v {
			v[i] = fill(v[i], variables)
		}
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, item := range v {
			filled[expand(key, variables)] = fill(item, variables)
		}
		return filled
	}
	return value
}

func expand(text string, variables map[string]string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return variables[placeholder.FindStringSubmatch(found)[1]]
	})
}

// move puts an object, and what it refers to, into the namespace that the configuration
// asks for. An object without a namespace is taken for one of the cluster.
func move(object *unstructured.Unstructured, namespace string) {
	if object.GetNamespace() != "" {
		object.SetNamespace(namespace)
	}
	switch object.GetKind() {
	case "Namespace":
		object.SetName(namespace)
	case "RoleBinding", "ClusterRoleBinding":
		subjects, _ := object.Object["subjects"].([]any)
		for _, item := range subjects {
			if subject, ok := item.(map[string]any); ok && subject["kind"] == rbacv1.ServiceAccountKind {
				subject["namespace"] = namespace
			}
		}
	}
}
