//go:build linux

package delivery_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
)

// TestCopies separates the clusters with a work from those without.
func TestCopies(t *testing.T) {
	t.Parallel()
	hub := delivery.Hub{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "app"}},
	).Build()}
	found, missing, err := hub.Copies(t.Context(), "app", []string{"c1", "c2"})
	if err != nil || len(found) != 1 || found[0].Namespace != "c1" {
		t.Errorf("got %v, %v", found, err)
	}
	if diff := cmp.Diff([]string{"c2"}, missing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAway names the first cluster whose agents are not heard from.
func TestAway(t *testing.T) {
	t.Parallel()
	available := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	available.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
	away := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}}
	hub := delivery.Hub{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(available, away).Build()}
	for want, clusters := range map[string][]string{"": {"c1"}, "c2": {"c1", "c2"}} {
		if got := hub.Away(t.Context(), clusters); got != want {
			t.Errorf("of %v %q is away", clusters, got)
		}
	}
}

func TestUnmet(t *testing.T) {
	t.Parallel()
	err := &apply.WaitError{Unmet: []apply.Unmet{{Object: apply.Ref{Namespace: "c1", Name: "app"}, Message: "is not applied"}}}
	if got := delivery.Unmet(err); got != "c1: is not applied" {
		t.Errorf("got %q", got)
	}
	if got := delivery.Unmet(errors.New("other")); got != "" {
		t.Errorf("got %q of another error", got)
	}
}
