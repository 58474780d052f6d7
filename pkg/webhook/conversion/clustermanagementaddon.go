package conversion

import "github.com/kubectl-ocm/kubectl-ocm/pkg/names"

// Fields of a ClusterManagementAddOn that the versions do not share.
const (
	fieldSupportedConfigs   = "supportedConfigs"   // v1alpha1
	fieldDefaultConfigs     = "defaultConfigs"     // v1beta1
	fieldAddOnConfiguration = "addOnConfiguration" // v1alpha1

	fieldDefaultReferencesAlpha = "defaultconfigReferences"
	fieldDefaultReferencesBeta  = "defaultConfigReferences"
)

// clusterManagementAddOnToBeta converts from v1alpha1. What the carriers hold of
// the list of configurations stands under the name that it has in v1beta1.
func clusterManagementAddOnToBeta(s *scope) error {
	spec, ok, err := mapAt(s.obj, "spec")
	if err != nil {
		return err
	}
	if ok {
		s.carryField(spec, fieldAddOnConfiguration)
		rename(spec, fieldSupportedConfigs, fieldDefaultConfigs)
		err := s.convertList(spec, "spec", fieldDefaultConfigs, element{forward: defaultConfigToBeta, back: defaultConfigToAlpha})
		if err != nil {
			return err
		}
	}
	status, ok, err := mapAt(s.obj, "status")
	if ok {
		rename(status, fieldDefaultReferencesAlpha, fieldDefaultReferencesBeta)
	}
	return err
}

// clusterManagementAddOnToAlpha converts from v1beta1.
func clusterManagementAddOnToAlpha(s *scope) error {
	spec, ok, err := mapAt(s.obj, "spec")
	if err != nil {
		return err
	}
	if ok {
		s.restoreField(spec, fieldAddOnConfiguration)
		err := s.convertList(spec, "spec", fieldDefaultConfigs, element{forward: defaultConfigToAlpha, back: defaultConfigToBeta})
		if err != nil {
			return err
		}
		rename(spec, fieldDefaultConfigs, fieldSupportedConfigs)
	}
	status, ok, err := mapAt(s.obj, "status")
	if ok {
		rename(status, fieldDefaultReferencesBeta, fieldDefaultReferencesAlpha)
	}
	return err
}

// defaultConfigToBeta turns a supported configuration with its default into a
// default configuration. One without gets a reserved name, because v1beta1
// cannot do without one.
func defaultConfigToBeta(alpha map[string]any) map[string]any {
	out := without(alpha, "defaultConfig", "namespace", "name")
	out["name"] = names.ReservedNoDefaultConfig
	referent, ok := alpha["defaultConfig"].(map[string]any)
	if !ok {
		return out
	}
	if name, ok := referent["name"].(string); ok && name != "" && name != names.ReservedNoDefaultConfig {
		out["name"] = name
		if namespace, ok := referent["namespace"]; ok {
			out["namespace"] = namespace
		}
	}
	return out
}

// defaultConfigToAlpha is its inverse.
func defaultConfigToAlpha(beta map[string]any) map[string]any {
	out := without(beta, "defaultConfig", "namespace", "name")
	name, ok := beta["name"].(string)
	if !ok || name == "" || name == names.ReservedNoDefaultConfig {
		return out
	}
	referent := map[string]any{"name": name}
	if namespace, ok := beta["namespace"]; ok {
		referent["namespace"] = namespace
	}
	out["defaultConfig"] = referent
	return out
}
