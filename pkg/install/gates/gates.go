package gates

import (
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Set is the gates of a component, with their defaults.
type Set = map[featuregate.Feature]featuregate.FeatureSpec

// Registration adds to the gates of registration the one that upstream's operators read
// there.
func Registration(set Set) Set {
	set = maps.Clone(set)
	set[names.GateNetworkPolicies] = featuregate.FeatureSpec{}
	return set
}

// Names returns the names of all gates, sorted.
func Names(sets ...Set) []string {
	all := map[string]bool{}
	for _, set := range sets {
		for name := range set {
			all[string(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Of returns those of the wanted gates that a component knows.
func Of(set Set, wanted []operatorv1.FeatureGate) []operatorv1.FeatureGate {
	return slices.DeleteFunc(slices.Clone(wanted), func(g operatorv1.FeatureGate) bool {
		_, ok := set[featuregate.Feature(g.Feature)]
		return !ok
	})
}

// Merge sets gates by name and retains the other live ones.
func Merge(live, wanted []operatorv1.FeatureGate) []operatorv1.FeatureGate {
	merged := slices.Clone(live)
	for _, gate := range wanted {
		i := slices.IndexFunc(merged, func(g operatorv1.FeatureGate) bool { return g.Feature == gate.Feature })
		if i >= 0 {
			merged[i] = gate
			continue
		}
		merged = append(merged, gate)
	}
	return merged
}
