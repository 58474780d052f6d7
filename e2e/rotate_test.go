package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestRotateCluster keeps the hub kubeconfig of a cluster's agent, as somebody has that it
// leaked to, and rotates the credential: what was kept is worthless.
func TestRotateCluster(t *testing.T) {
	const name = "rotated"
	fleet.needs(t, "cluster3")
	hub := fleet.client(t, "hub")
	fleet.leave(t, "cluster3", name)
	fleet.must(t, "join", "--hub-context", "hub", "--context", "cluster3", "--cluster-name", name, "--wait")
	awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)
	leaked := keepAgent(t, "cluster3")
	leaked.works(t, name)

	fleet.must(t, "join", "--rotate", "--hub-context", "hub", "--context", "cluster3", "--wait")
	now := keepAgent(t, "cluster3")
	if now.user == leaked.user {
		t.Fatalf("the agent is %s still", now.user)
	}
	leaked.isWorthless(t, name)
	now.works(t, name)
	_, agent, _ := names.ParseAgentUser(now.user)
	eventually(t, "check names the agent", func(ctx context.Context) error {
		r, err := run(ctx, fleet.kubeconfig, nil, "check", "cluster", name, "--context", "hub")
		if err == nil && !strings.Contains(r.stdout, "agent "+agent) {
			err = fmt.Errorf("it does not: %v", r)
		}
		return err
	})
}
