package agent_test

import (
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// TestHubOutage takes the hub's API server away long before the lease is due: the
// Klusterlet says so, and says when it is over.
func TestHubOutage(t *testing.T) {
	t.Parallel()
	h, plane := newMortalHub(t)
	s := newSpoke(t, h, "hubless")
	p := s.start(t)
	h.join(t, p, "hubless")
	eventually(t, "the lease duration", func() (bool, error) {
		cluster := h.cluster(t, "hubless")
		cluster.Spec.LeaseDurationSeconds = 3600
		return true, h.admin.Update(t.Context(), cluster)
	})
	p.stop() // The next one begins with the long lease.
	p = s.start(t)
	p.reaches(t, agent.Running)
	s.klusterletSays(t, metav1.ConditionFalse, names.ReasonHubConnectionFunctional, "")
	plane.StopAPIServer(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "has been unreachable since")
	plane.StartAPIServer(t)
	s.klusterletSays(t, metav1.ConditionFalse, names.ReasonHubConnectionFunctional, "")
	p.reaches(t, agent.Running)
}

// TestManagedOutage takes the managed cluster's API server away: the agent
// tells the hub, goes on with its lease, and tells when it is over.
func TestManagedOutage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	own := controlplane.Start(t)
	s := newSpokeOn(t, own.ControlPlane, h, "outage")
	s.config.HealthPeriod = time.Second
	p := s.start(t)
	h.join(t, p, "outage")
	h.quickLease(t, "outage")
	own.StopAPIServer(t)
	available := func() *metav1.Condition {
		return apimeta.FindStatusCondition(h.cluster(t, "outage").Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	}
	eventually(t, "the cluster to be unavailable", func() (bool, error) { return available().Status == metav1.ConditionFalse, nil })
	if got := available(); got.Reason != names.ReasonAPIServerUnavailable {
		t.Errorf("unavailable because of %s", got.Reason)
	}
	before := h.lease(t, "outage")
	eventually(t, "the lease to be renewed meanwhile", func() (bool, error) { return h.lease(t, "outage").After(before), nil })
	own.StartAPIServer(t)
	eventually(t, "the cluster to be available", func() (bool, error) { return available().Status == metav1.ConditionTrue, nil })
	p.reaches(t, agent.Running)
}
