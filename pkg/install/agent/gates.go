package agent

import (
	"open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/gates"
)

// Gates returns the names of all feature gates of an agent.
func Gates() []string {
	return gates.Names(gates.Registration(feature.DefaultSpokeRegistrationFeatureGates), feature.DefaultSpokeWorkFeatureGates)
}

// agentGates does the same for an agent.
func agentGates(spec *operatorv1.KlusterletSpec, wanted []operatorv1.FeatureGate) {
	registration := spec.RegistrationConfiguration
	registration.FeatureGates = gates.Merge(registration.FeatureGates, gates.Of(gates.Registration(feature.DefaultSpokeRegistrationFeatureGates), wanted))
	if work := gates.Of(feature.DefaultSpokeWorkFeatureGates, wanted); len(work) > 0 {
		if spec.WorkConfiguration == nil {
			spec.WorkConfiguration = &operatorv1.WorkAgentConfiguration{}
		}
		spec.WorkConfiguration.FeatureGates = gates.Merge(spec.WorkConfiguration.FeatureGates, work)
	}
}
