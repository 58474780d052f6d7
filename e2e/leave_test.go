package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestUnjoin joins a cluster, takes it out from its own side and joins it again.
func TestUnjoin(t *testing.T) {
	const name = "leaver"
	fleet.needs(t, "cluster3")
	hub, managed := fleet.client(t, "hub"), fleet.client(t, "cluster3")
	join := []string{"join", "--hub-context", "hub", "--context", "cluster3", "--cluster-name", name, "--wait"}
	fleet.leave(t, "cluster3", name)
	tokens := fleet.must(t, "token", "list", "--context", "hub", "-o", "name")
	joined := fleet.ocm(t, join...)
	if joined.code != 0 || !strings.Contains(joined.stderr, "(lifetime ") {
		t.Fatalf("join does not say how long the credential lives: %v", joined)
	}
	awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)

	t.Run("a join with both contexts leaves no bootstrap token behind", func(t *testing.T) {
		if after := fleet.must(t, "token", "list", "--context", "hub", "-o", "name"); after != tokens {
			t.Errorf("before\n%safter\n%s", tokens, after)
		}
	})
	t.Run("checks name a credential that lives longer than a limit", func(t *testing.T) {
		for _, args := range [][]string{{"check", "cluster", name, "--context", "hub"}, {"check", "agent", "--context", "cluster3"}} {
			const long = "longer than 1m: the cluster's certificate ("
			if r := fleet.ocm(t, append(args, "--max-lifetime", "1m")...); !strings.Contains(r.stdout, long) {
				t.Errorf("%v does not say %q: %v", args, long, r)
			}
			if r := fleet.ocm(t, append(args, "--max-lifetime", "0")...); strings.Contains(r.stdout, "longer than") {
				t.Errorf("%v names something without a limit: %v", args, r)
			}
		}
	})
	t.Run("the hub takes back the cluster's rights and the agent is gone", func(t *testing.T) {
		fleet.must(t, "unjoin", "--yes", "--context", "cluster3", "--cluster-name", name, "--wait")
		eventually(t, "denied", func(ctx context.Context) error {
			var cluster clusterv1.ManagedCluster
			if err := hub.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
				return err
			}
			c := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
			if cluster.Spec.HubAcceptsClient || c == nil || c.Reason != names.ReasonHubDenied {
				return fmt.Errorf("%v %+v", cluster.Spec.HubAcceptsClient, c)
			}
			return wantGone(hub.Get(ctx, client.ObjectKey{Namespace: name, Name: names.RegistrationRoleBinding(name)}, &rbacv1.RoleBinding{}))
		})
		for _, obj := range []client.Object{
			&operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: names.KlusterletName}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.OperatorNamespace, Name: names.KlusterletOperator}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.AgentNamespace}},
		} {
			if err := wantGone(managed.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)); err != nil {
				t.Errorf("%T: %v", obj, err)
			}
		}
	})
	t.Run("a second unjoin finds nothing and says so", func(t *testing.T) {
		if r := fleet.ocm(t, "unjoin", "--yes", "--context", "cluster3", "--cluster-name", name); r.code != codeNotFound {
			t.Errorf("%v", r)
		}
	})
	t.Run("it can join again under its name", func(t *testing.T) {
		fleet.must(t, join...)
		awaitCondition(t, hub, name, clusterv1.ManagedClusterConditionAvailable)
	})
	t.Run("deleting the ManagedCluster detaches it", func(t *testing.T) {
		if err := hub.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is gone, with its rights", func(ctx context.Context) error {
			if err := wantGone(hub.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})); err != nil {
				return err
			}
			return wantGone(hub.Get(ctx, client.ObjectKey{Name: names.ManagedClusterClusterRole(name)}, &rbacv1.ClusterRole{}))
		})
		fleet.must(t, "unjoin", "--yes", "--context", "cluster3", "--cluster-name", name, "--side", "managed", "--force", "--wait")
	})
}

func wantGone(err error) error {
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	if err == nil {
		return errors.New("it still exists")
	}
	return err
}
