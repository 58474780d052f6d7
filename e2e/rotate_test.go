package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	for what, do := range leaked.deeds(t, name) {
		eventually(t, "before, it may "+what, func(ctx context.Context) error { return do(ctx, leaked.identity) })
	}

	fleet.must(t, "join", "--rotate", "--hub-context", "hub", "--context", "cluster3", "--wait")
	now := keepAgent(t, "cluster3")
	if now.user == leaked.user {
		t.Fatalf("the agent is %s still", now.user)
	}
	for what, do := range leaked.deeds(t, name) {
		eventually(t, "the earlier name may not "+what, func(ctx context.Context) error { return wantForbidden(do(ctx, leaked.identity)) })
		if err := do(t.Context(), leaked.certified); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			t.Errorf("the certificate that leaked may %s: %v", what, err)
		}
	}
	for what, do := range now.deeds(t, name) {
		eventually(t, "the agent may "+what, func(ctx context.Context) error { return do(ctx, now.identity) })
	}
	_, agent, _ := names.ParseAgentUser(now.user)
	eventually(t, "check names the agent", func(ctx context.Context) error {
		r, err := run(ctx, fleet.kubeconfig, nil, "check", "cluster", name, "--context", "hub")
		if err == nil && !strings.Contains(r.stdout, "agent "+agent) {
			err = fmt.Errorf("it does not: %v", r)
		}
		return err
	})
}
