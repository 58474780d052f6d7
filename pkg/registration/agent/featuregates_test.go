package agent_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

func TestParseFeatureGates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		entries []string
		claims  bool
		problem string
	}{
		{name: "defaults", claims: true},
		{name: "switched off", entries: []string{"AddonManagement=false,ClusterClaim=false"}},
		{name: "the last one wins", entries: []string{"ClusterClaim=false", "ClusterClaim=true"}, claims: true},
		{name: "off is always available", entries: []string{"MultipleHubs=false"}, claims: true},
		{name: "unknown", entries: []string{"Clusterclaim=true"}, problem: "AddonManagement, ClusterClaim"},
		{name: "no value", entries: []string{"ClusterClaim"}, problem: "ClusterClaim=true or ClusterClaim=false"},
		{name: "several hubs", entries: []string{"MultipleHubs=true"}, problem: "not available in this version"},
		{name: "properties", entries: []string{"ClusterProperty=true"}, problem: "not available in this version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			gates, err := agent.ParseFeatureGates(tc.entries)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got %v, want %q", err, tc.problem)
				}
				return
			}
			if err != nil || gates.Enabled(agent.GateClusterClaim) != tc.claims {
				t.Errorf("got %v, %v", gates, err)
			}
		})
	}
}
