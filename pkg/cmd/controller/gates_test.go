//go:build linux

package controller_test

import (
	"testing"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/controller"
)

func TestAgentGates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		settings []string
		claims   bool
	}{
		{name: "the default", claims: true},
		{name: "off", settings: []string{"AddonManagement=false", "ClusterClaim=false"}},
		{name: "the last one wins", settings: []string{"ClusterClaim=false", "ClusterClaim=true"}, claims: true},
		{name: "off is always available", settings: []string{"MultipleHubs=false"}, claims: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if claims, err := controller.AgentGate(feature.ClusterClaim, tc.settings...); err != nil || claims != tc.claims {
				t.Errorf("got %v, %v", claims, err)
			}
		})
	}
}
