package gates_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/gates"
)

func known() gates.Known { return gates.Known{"On": {Default: true}, "Off": {Default: false}} }

func TestArgs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		requested []operatorv1.FeatureGate
		want      []string
		unknown   []string
	}{
		{name: "defaults need no flag"},
		{
			name:      "an explicit disable of a default gate is passed on",
			requested: []operatorv1.FeatureGate{{Feature: "On", Mode: operatorv1.FeatureGateModeTypeDisable}},
			want:      []string{"--feature-gates=On=false"},
		},
		{
			name: "a gate that is set to its default needs no flag",
			requested: []operatorv1.FeatureGate{
				{Feature: "On", Mode: operatorv1.FeatureGateModeTypeEnable}, {Feature: "Off", Mode: operatorv1.FeatureGateModeTypeDisable},
			},
		},
		{
			name: "unknown gates are dropped and told, known ones work",
			requested: []operatorv1.FeatureGate{
				{Feature: "Off", Mode: operatorv1.FeatureGateModeTypeEnable},
				{Feature: "Z", Mode: operatorv1.FeatureGateModeTypeEnable},
				{Feature: "A"},
				{Feature: "Z"},
			},
			want:    []string{"--feature-gates=Off=true"},
			unknown: []string{"A", "Z"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := gates.Evaluate(known(), tc.requested)
			if diff := cmp.Diff(tc.want, got.Args()); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unknown, got.Unknown); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			want := metav1.ConditionTrue
			if len(tc.unknown) > 0 {
				want = metav1.ConditionFalse
			}
			if c := gates.Condition(got); c.Status != want {
				t.Errorf("condition %+v", c)
			}
		})
	}
}
