package drivertest_test

import (
	"crypto/tls"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// TestFakeAgent: the suite holds no driver to having certificates, files, pending
// data, an end, or writes of its own.
func TestFakeAgent(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	admin := cp.Client(t)
	installation.Hub(t, admin, manifests.Hub{})
	entry, err := kubeconfig.ParseHub(cp.KubeconfigFor(t, "fake-user"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := tls.X509KeyPair(entry.User.ClientCertificateData, entry.User.ClientKeyData)
	if err != nil {
		t.Fatal(err)
	}
	outside := drivertest.NewOutside()
	decide := func(t *testing.T, id driver.Identity, accepted bool, status metav1.ConditionStatus) {
		t.Helper()
		cluster := &clusterv1.ManagedCluster{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: id.Cluster}, cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Spec.HubAcceptsClient = accepted
		if err := admin.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		apimeta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionHubAccepted, Status: status, Reason: "Test"})
		if err := admin.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if accepted {
			outside.Set(drivertest.FakeEntry(id.Cluster), "group "+names.MappedClusterGroup(id.Cluster))
		}
	}
	drivertest.RunAgent(t, drivertest.AgentSuite{
		New: func(id driver.Identity) driver.Agent {
			agent := &drivertest.FakeAgent{Identity: id, ID: id.Cluster, Outside: outside, Certificate: shown}
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: id.Cluster}}
			agent.Decorate(cluster)
			installation.Create(t, admin, cluster)
			return agent
		},
		Hub:     cp.Config(t),
		Address: entry,
		User:    func(driver.Identity) string { return "fake-user" },
		Grant: func(t *testing.T, id driver.Identity) {
			t.Helper()
			decide(t, id, true, metav1.ConditionTrue)
		},
		Refuse: func(t *testing.T, id driver.Identity) {
			t.Helper()
			decide(t, id, false, metav1.ConditionFalse)
		},
	})
}
