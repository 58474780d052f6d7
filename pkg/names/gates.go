package names

import (
	"k8s.io/component-base/featuregate"

	"open-cluster-management.io/api/feature"
)

// GateNetworkPolicies is a feature gate of upstream's operators, which they read
// from the gates of registration. The OCM API module does not list it.
// See docs/reference/wire-contract.md#feature-gates.
const GateNetworkPolicies = "NetworkPolicies"

// The feature gates that this release acts on, by component. The others are off.

// HubRegistrationGates are the feature gates of the registration controller.
func HubRegistrationGates() []featuregate.Feature {
	return []featuregate.Feature{feature.ManagedClusterAutoApproval, feature.ResourceCleanup}
}

// HubAddOnGates are the feature gates of the add-on manager.
func HubAddOnGates() []featuregate.Feature { return []featuregate.Feature{feature.AddonManagement} }

// HubWorkGates are the feature gates of ManifestWorks on the hub.
func HubWorkGates() []featuregate.Feature {
	return append(HubWorkControllerGates(), feature.NilExecutorValidating)
}

// HubWorkControllerGates are the feature gates of the controllers of ManifestWorks,
// which run in the registration controller. Admission has the others.
func HubWorkControllerGates() []featuregate.Feature {
	return []featuregate.Feature{feature.CleanUpCompletedManifestWork, feature.ManifestWorkReplicaSet}
}

// AgentRegistrationGates are the feature gates of the registration agent.
func AgentRegistrationGates() []featuregate.Feature {
	return []featuregate.Feature{feature.ClusterClaim, feature.AddonManagement}
}

// AgentWorkGates are the feature gates of the work agent. ExecutorValidatingCaches has
// no effect: it makes OCM's agent cache reviews of executors, which ours makes before a
// write only.
func AgentWorkGates() []featuregate.Feature {
	return []featuregate.Feature{feature.RawFeedbackJsonString, feature.ExecutorValidatingCaches}
}
