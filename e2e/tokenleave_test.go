package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// TestTokenExchangeLeave has a cluster join, be denied, be accepted again and
// leave. Its tokens are worth what the hub thinks of the cluster.
func TestTokenExchangeLeave(t *testing.T) {
	fleet.needs(t, "cluster3")
	hub := fleet.client(t, "hub")
	fleet.leave(t, "cluster3", "cluster3")
	if err := fleet.joinCluster(t.Context(), "cluster3", "--publish-issuer"); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, hub, "cluster3", names.ConditionIssuerTrusted)
	front := newHubProxy(t)
	token := workloadToken(t, "cluster3", "token-exchange-leave", "web")
	answers := func(what string, want int) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			status, err := ask(ctx, front, token)
			if err == nil && status != want {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
	answers("a token of an accepted cluster is known, and allowed nothing", http.StatusForbidden)

	fleet.must(t, "accept", "--context", "hub", "--clusters", "cluster3", "--deny", "--yes")
	answers("a token of a denied cluster", http.StatusUnauthorized)
	eventually(t, "the cluster shows it", func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := hub.Get(ctx, client.ObjectKey{Name: "cluster3"}, &cluster); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionIssuerTrusted); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})

	fleet.must(t, "accept", "--context", "hub", "--clusters", "cluster3")
	answers("a token of a cluster that is accepted again", http.StatusForbidden)

	fleet.must(t, "unjoin", "--yes", "--context", "cluster3", "--cluster-name", "cluster3", "--hub-context", "hub", "--wait")
	answers("a token of a cluster that left", http.StatusUnauthorized)
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "cluster3", Name: names.IssuerConfigMap}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("what it published: %v", err)
	}
}
