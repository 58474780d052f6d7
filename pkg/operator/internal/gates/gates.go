package gates

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// The condition of contract D.5 and D.8.
const (
	// ConditionValid is True when every gate is known.
	ConditionValid = "ValidFeatureGates"
	// ReasonAllValid is the reason of True.
	ReasonAllValid = "FeatureGatesAllValid"
	// ReasonInvalid is the reason of False.
	ReasonInvalid = "InvalidFeatureGatesExisting"
)

// Known are the gates of a component with their defaults.
type Known map[featuregate.Feature]featuregate.FeatureSpec

// Setting is what a resource asks of one component.
type Setting struct {
	// Enabled tells for every known gate whether it is on.
	Enabled map[featuregate.Feature]bool
	// Unknown are the gates that the component does not have, sorted.
	Unknown []string
	known   Known
}

// Evaluate applies requested to the defaults of known. A gate that is
// mentioned twice is what its last mention says.
func Evaluate(known Known, requested []operatorv1.FeatureGate) Setting {
	s := Setting{Enabled: make(map[featuregate.Feature]bool, len(known)), known: known}
	for name, spec := range known {
		s.Enabled[name] = spec.Default
	}
	for _, gate := range requested {
		name := featuregate.Feature(gate.Feature)
		if _, ok := known[name]; !ok {
			s.Unknown = append(s.Unknown, gate.Feature)
			continue
		}
		s.Enabled[name] = gate.Mode == operatorv1.FeatureGateModeTypeEnable
	}
	slices.Sort(s.Unknown)
	s.Unknown = slices.Compact(s.Unknown)
	return s
}

// Args returns the flags for the gates that differ from their defaults, sorted.
func (s Setting) Args() []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(s.Enabled)) {
		if s.Enabled[name] != s.known[name].Default {
			args = append(args, fmt.Sprintf("--feature-gates=%s=%t", name, s.Enabled[name]))
		}
	}
	return args
}

// On returns those of features that are enabled.
func (s Setting) On(features ...featuregate.Feature) []featuregate.Feature {
	return slices.DeleteFunc(slices.Clone(features), func(f featuregate.Feature) bool { return !s.Enabled[f] })
}

// Condition is ValidFeatureGates for the settings of all components.
func Condition(settings ...Setting) metav1.Condition {
	var unknown []string
	for _, s := range settings {
		unknown = append(unknown, s.Unknown...)
	}
	if len(unknown) == 0 {
		return metav1.Condition{
			Type: ConditionValid, Status: metav1.ConditionTrue,
			Reason: ReasonAllValid, Message: "Feature gates are all valid",
		}
	}
	return metav1.Condition{
		Type: ConditionValid, Status: metav1.ConditionFalse, Reason: ReasonInvalid,
		Message: "There are unknown feature gates, which have no effect: " + strings.Join(unknown, ", "),
	}
}
