package install

import (
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"

	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type gates = map[featuregate.Feature]featuregate.FeatureSpec

// registrationGates adds the gate that upstream's operators read from those of
// registration.
func registrationGates(set gates) gates {
	set = maps.Clone(set)
	set[names.GateNetworkPolicies] = featuregate.FeatureSpec{}
	return set
}

// HubFeatures returns the names of all feature gates of a hub.
func HubFeatures() []string {
	return featureNames(registrationGates(feature.DefaultHubRegistrationFeatureGates), feature.DefaultHubWorkFeatureGates,
		feature.DefaultHubAddonManagerFeatureGates, feature.DefaultHubPlacementFeatureGates)
}

// AgentFeatures returns the names of all feature gates of an agent.
func AgentFeatures() []string {
	return featureNames(registrationGates(feature.DefaultSpokeRegistrationFeatureGates), feature.DefaultSpokeWorkFeatureGates)
}

func featureNames(sets ...gates) []string {
	var out []string
	for _, set := range sets {
		for name := range maps.Keys(set) {
			if !slices.Contains(out, string(name)) {
				out = append(out, string(name))
			}
		}
	}
	slices.Sort(out)
	return out
}

// of returns those of the gates that a component knows.
func of(set gates, wanted []operatorv1.FeatureGate) []operatorv1.FeatureGate {
	return slices.DeleteFunc(slices.Clone(wanted), func(g operatorv1.FeatureGate) bool {
		_, ok := set[featuregate.Feature(g.Feature)]
		return !ok
	})
}

// hubGates puts each gate where its component reads it.
func hubGates(spec *operatorv1.ClusterManagerSpec, wanted []operatorv1.FeatureGate) {
	registration := spec.RegistrationConfiguration
	registration.FeatureGates = mergeGates(registration.FeatureGates, of(registrationGates(feature.DefaultHubRegistrationFeatureGates), wanted))
	if work := of(feature.DefaultHubWorkFeatureGates, wanted); len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = mergeGates(spec.WorkConfiguration.FeatureGates, work)
	}
	if addOns := of(feature.DefaultHubAddonManagerFeatureGates, wanted); len(addOns) > 0 {
		if spec.AddOnManagerConfiguration == nil {
			spec.AddOnManagerConfiguration = &operatorv1.AddOnManagerConfiguration{}
		}
		spec.AddOnManagerConfiguration.FeatureGates = mergeGates(spec.AddOnManagerConfiguration.FeatureGates, addOns)
	}
	if placement := of(feature.DefaultHubPlacementFeatureGates, wanted); len(placement) > 0 {
		if spec.PlacementConfiguration == nil {
			spec.PlacementConfiguration = &operatorv1.PlacementConfiguration{}
		}
		spec.PlacementConfiguration.FeatureGates = mergeGates(spec.PlacementConfiguration.FeatureGates, placement)
	}
}

// agentGates does the same for an agent.
func agentGates(spec *operatorv1.KlusterletSpec, wanted []operatorv1.FeatureGate) {
	registration := spec.RegistrationConfiguration
	registration.FeatureGates = mergeGates(registration.FeatureGates, of(registrationGates(feature.DefaultSpokeRegistrationFeatureGates), wanted))
	if work := of(feature.DefaultSpokeWorkFeatureGates, wanted); len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = mergeGates(spec.WorkConfiguration.FeatureGates, work)
	}
}
