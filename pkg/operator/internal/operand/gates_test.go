package operand_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/operand"
)

func known() operand.Gates {
	return operand.Gates{
		Specs: map[featuregate.Feature]featuregate.FeatureSpec{
			"On": {Default: true}, "Off": {Default: false}, "LaterOn": {Default: true}, "LaterOff": {Default: false},
		},
		Implemented: []featuregate.Feature{"On", "Off"},
	}
}

func on(name string) operatorv1.FeatureGate {
	return operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeEnable}
}

func off(name string) operatorv1.FeatureGate {
	return operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeDisable}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		known     operand.Gates
		requested []operatorv1.FeatureGate
		want      []string
		condition metav1.Condition
	}{
		{
			name:      "defaults need no flag, implemented or not",
			condition: metav1.Condition{Status: metav1.ConditionTrue, Reason: operand.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid"},
		},
		{
			name:      "an explicit disable of a default gate is passed on",
			requested: []operatorv1.FeatureGate{off("On")},
			want:      []string{"--feature-gates=On=false"},
			condition: metav1.Condition{Status: metav1.ConditionTrue, Reason: operand.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid"},
		},
		{
			name:      "a gate that is set to its default needs no flag",
			requested: []operatorv1.FeatureGate{on("On"), off("Off")},
			condition: metav1.Condition{Status: metav1.ConditionTrue, Reason: operand.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid"},
		},
		{
			name:      "unknown gates are dropped and named, known ones work",
			requested: []operatorv1.FeatureGate{on("Off"), on("Z"), {Feature: "A"}, on("Z")},
			want:      []string{"--feature-gates=Off=true"},
			condition: metav1.Condition{Status: metav1.ConditionFalse, Reason: operand.ReasonFeatureGatesInvalid, Message: "Unknown feature gates have no effect: A, Z"},
		},
		{
			name:      "gates that are not implemented are dropped and named, known ones work",
			requested: []operatorv1.FeatureGate{on("Off"), on("LaterOn"), on("LaterOff")},
			want:      []string{"--feature-gates=Off=true"},
			condition: metav1.Condition{
				Status: metav1.ConditionFalse, Reason: operand.ReasonFeatureGatesWithoutEffect,
				Message: "Feature gates that this version does not implement have no effect: LaterOff, LaterOn",
			},
		},
		{
			name:      "what is not implemented is off, which is valid to ask for",
			requested: []operatorv1.FeatureGate{off("LaterOn"), off("LaterOff")},
			condition: metav1.Condition{Status: metav1.ConditionTrue, Reason: operand.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid"},
		},
		{
			name:      "the last mention counts",
			requested: []operatorv1.FeatureGate{on("LaterOff"), off("On"), off("LaterOff"), on("On")},
			condition: metav1.Condition{Status: metav1.ConditionTrue, Reason: operand.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid"},
		},
		{
			name:      "upstream's gate of the operators is known",
			known:     known().Operator(),
			requested: []operatorv1.FeatureGate{on("NetworkPolicies"), on("Z")},
			condition: metav1.Condition{
				Status: metav1.ConditionFalse, Reason: operand.ReasonFeatureGatesInvalid,
				Message: "Feature gates that this version does not implement have no effect: NetworkPolicies. Unknown feature gates have no effect: Z",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.known.Specs == nil {
				tc.known = known()
			}
			got := operand.EvaluateGates(tc.known, tc.requested)
			if diff := cmp.Diff(tc.want, got.Args()); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			tc.condition.Type = "ValidFeatureGates"
			if diff := cmp.Diff(tc.condition, operand.GatesCondition(got)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if got.Enabled["LaterOn"] {
				t.Error("a gate that is not implemented is on")
			}
		})
	}
}
