package operand

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// The condition about feature gates. Type and the first two reasons are OCM's.
const (
	// ConditionValidFeatureGates is True when every gate is known, and implemented where it
	// is enabled.
	ConditionValidFeatureGates = "ValidFeatureGates"
	// ReasonFeatureGatesAllValid is the reason of True.
	ReasonFeatureGatesAllValid = "FeatureGatesAllValid"
	// ReasonFeatureGatesInvalid is the reason of False when a gate is unknown.
	ReasonFeatureGatesInvalid = "InvalidFeatureGatesExisting"
	// ReasonFeatureGatesWithoutEffect is the reason of False when all gates are known.
	ReasonFeatureGatesWithoutEffect = "FeatureGatesWithoutEffect"
)

// Gates are the gates of a component; see
// docs/reference/wire-contract.md#feature-gates.
type Gates struct {
	// Specs are all gates with their defaults.
	Specs map[featuregate.Feature]featuregate.FeatureSpec
	// Implemented are the gates that this version acts on. The others are off.
	Implemented []featuregate.Feature
}

// Operator adds the gate that upstream's operators read themselves from the
// gates of registration.
func (k Gates) Operator() Gates {
	k.Specs = maps.Clone(k.Specs)
	k.Specs[names.GateNetworkPolicies] = featuregate.FeatureSpec{}
	return k
}

func (k Gates) implements(name featuregate.Feature) bool { return slices.Contains(k.Implemented, name) }

// GateSetting is the gate setting of a resource for one component.
type GateSetting struct {
	// Enabled is true for the gates that are on.
	Enabled map[featuregate.Feature]bool
	// Unknown are the gates that the component does not have, sorted.
	Unknown []string
	// WithoutEffect are the requested gates that are not implemented, sorted.
	WithoutEffect []string

	known Gates
}

// EvaluateGates applies requested to the defaults of known. If a gate occurs twice, the
// last occurrence applies.
func EvaluateGates(known Gates, requested []operatorv1.FeatureGate) GateSetting {
	s := GateSetting{Enabled: make(map[featuregate.Feature]bool, len(known.Specs)), known: known}
	for name, spec := range known.Specs {
		s.Enabled[name] = spec.Default && known.implements(name)
	}
	asked := map[string]bool{}
	for _, gate := range requested {
		asked[gate.Feature] = gate.Mode == operatorv1.FeatureGateModeTypeEnable
	}
	for _, gate := range slices.Sorted(maps.Keys(asked)) {
		name := featuregate.Feature(gate)
		switch _, ok := known.Specs[name]; {
		case !ok:
			s.Unknown = append(s.Unknown, gate)
		case known.implements(name):
			s.Enabled[name] = asked[gate]
		case asked[gate]:
			s.WithoutEffect = append(s.WithoutEffect, gate)
		}
	}
	return s
}

// Args returns the flags for the gates that differ from their defaults, sorted.
func (s GateSetting) Args() []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(s.Enabled)) {
		if s.known.implements(name) && s.Enabled[name] != s.known.Specs[name].Default {
			args = append(args, fmt.Sprintf("--feature-gates=%s=%t", name, s.Enabled[name]))
		}
	}
	return args
}

// GatesCondition is ValidFeatureGates for the settings of all components.
func GatesCondition(settings ...GateSetting) metav1.Condition {
	var unknown, withoutEffect []string
	for _, s := range settings {
		unknown = append(unknown, s.Unknown...)
		withoutEffect = append(withoutEffect, s.WithoutEffect...)
	}
	c := metav1.Condition{
		Type: ConditionValidFeatureGates, Status: metav1.ConditionTrue,
		Reason: ReasonFeatureGatesAllValid, Message: "Feature gates are all valid",
	}
	var sentences []string
	if len(withoutEffect) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, ReasonFeatureGatesWithoutEffect
		sentences = append(sentences, "Feature gates that this version does not implement have no effect: "+strings.Join(withoutEffect, ", "))
	}
	if len(unknown) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, ReasonFeatureGatesInvalid
		sentences = append(sentences, "Unknown feature gates have no effect: "+strings.Join(unknown, ", "))
	}
	if len(sentences) > 0 {
		c.Message = strings.Join(sentences, ". ")
	}
	return c
}
