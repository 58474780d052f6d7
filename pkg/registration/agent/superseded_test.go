package agent_test

import (
	"bytes"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

// testRenewsAfterRejection: the request that an agent made while the hub refused
// its certificate is for a person to decide, and must not stop the renewals of
// the certificate once the hub accepts it again.
func testRenewsAfterRejection(t *testing.T, h *hub) {
	t.Helper()
	front := newFront(t, h)
	s := newSpoke(t, nil, "doubted")
	clock := s.moveClock(t)
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte(front.url)))
	p := s.start(t)
	h.join(t, p, "doubted")
	p.stop()
	front.refuses.Store(true)
	p = s.start(t)
	p.reaches(t, agent.Requested)
	front.refuses.Store(false)
	p.reaches(t, agent.Running)
	p.stop()
	before := s.certificate(t, names.HubKubeconfigSecret).NotAfter
	clock.Step(before.Sub(clock.Now()) * 9 / 10)
	h.renewals(t, "doubted")
	s.start(t)
	eventually(t, "a renewed certificate", func() (bool, error) { return s.certificate(t, names.HubKubeconfigSecret).NotAfter.After(before), nil })
}

// testSuperseded takes the rights of an agent whose cluster stays accepted, as
// when the hub was restored, or accepted another agent by mistake.
func testSuperseded(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "superseded")
	clock := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, "superseded")
	h.supersede(t, "superseded") // While the agent is not connected, ...
	p.stop()
	p = s.start(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "another agent")
	clock.Step(2 * presence)
	p.reaches(t, agent.Requested)
	h.join(t, p, "superseded")
	h.quickLease(t, "superseded")
	p.reaches(t, agent.Running)
	h.supersede(t, "superseded") // ... and while it is.
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigUnauthorized", "another agent")
}

// supersede takes every right of the agents of a cluster.
func (h *hub) supersede(t *testing.T, cluster string) {
	t.Helper()
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.ManagedClusterClusterRole(cluster)}},
		registrationBinding(cluster),
	} {
		if err := h.admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// presence is how often an agent without rights asks for its ManagedCluster.
const presence = time.Minute
