package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestRestoredCluster deletes the ManagedCluster of an agent that goes on, and creates it
// again, accepted, as from a backup. No agent has its permissions then: both sides name the
// one command that helps, and it helps.
func TestRestoredCluster(t *testing.T) {
	const name = "restored"
	fleet.needs(t, "cluster3")
	hub, managed := fleet.client(t, "hub"), fleet.client(t, "cluster3")
	fleet.leave(t, "cluster3", name)
	fleet.must(t, "join", "--hub-context", "hub", "--context", "cluster3", "--cluster-name", name, "--wait")
	awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)

	if err := hub.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ManagedCluster is gone", func(ctx context.Context) error {
		err := hub.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
	backup := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	if err := hub.Create(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent names the command", func(ctx context.Context) error {
		var klusterlet operatorv1.Klusterlet
		if err := managed.Get(ctx, client.ObjectKey{Name: names.KlusterletName}, &klusterlet); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(klusterlet.Status.Conditions, names.ConditionHubConnectionDegraded)
		if c == nil || !strings.Contains(c.Message, "kubectl ocm join --refresh") {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
	for what, args := range map[string][]string{
		"check":  {"check", "cluster", name, "--context", "hub"},
		"accept": {"accept", name, "--context", "hub"},
	} {
		eventually(t, what+" names the command", func(ctx context.Context) error {
			r, err := run(ctx, fleet.kubeconfig, nil, args...)
			if err == nil && (r.code == 0 || !strings.Contains(r.stdout+r.stderr, "join --refresh")) {
				err = fmt.Errorf("it does not: %v", r)
			}
			return err
		})
	}

	fleet.must(t, "join", "--refresh", "--hub-context", "hub", "--context", "cluster3", "--wait")
	awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)
}
