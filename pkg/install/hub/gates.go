package hub

import (
	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/gates"
)

// Gates returns the names of all feature gates of a hub.
func Gates() []string {
	return gates.Names(gates.Registration(feature.DefaultHubRegistrationFeatureGates), feature.DefaultHubWorkFeatureGates,
		feature.DefaultHubAddonManagerFeatureGates, feature.DefaultHubPlacementFeatureGates)
}

// hubGates puts each gate where its component reads it.
func hubGates(spec *operatorv1.ClusterManagerSpec, wanted []operatorv1.FeatureGate) {
	registration := spec.RegistrationConfiguration
	registration.FeatureGates = gates.Merge(registration.FeatureGates, gates.Of(gates.Registration(feature.DefaultHubRegistrationFeatureGates), wanted))
	if work := gates.Of(feature.DefaultHubWorkFeatureGates, wanted); len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = gates.Merge(spec.WorkConfiguration.FeatureGates, work)
	}
	if addOns := gates.Of(feature.DefaultHubAddonManagerFeatureGates, wanted); len(addOns) > 0 {
		if spec.AddOnManagerConfiguration == nil {
			spec.AddOnManagerConfiguration = &operatorv1.AddOnManagerConfiguration{}
		}
		spec.AddOnManagerConfiguration.FeatureGates = gates.Merge(spec.AddOnManagerConfiguration.FeatureGates, addOns)
	}
	if placement := gates.Of(feature.DefaultHubPlacementFeatureGates, wanted); len(placement) > 0 {
		if spec.PlacementConfiguration == nil {
			spec.PlacementConfiguration = &operatorv1.PlacementConfiguration{}
		}
		spec.PlacementConfiguration.FeatureGates = gates.Merge(spec.PlacementConfiguration.FeatureGates, placement)
	}
}
