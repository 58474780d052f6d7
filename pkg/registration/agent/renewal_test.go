package agent_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestRenewal(t *testing.T) {
	t.Parallel()
	h := newHub(t, controlplane.WithCertDuration(longLife))
	for name, test := range map[string]func(*testing.T, *hub){
		"renews again and again within one connection":                testRenewals,
		"registers again when its certificate has expired":            testExpired,
		"registers again in process when its renewal is not approved": testUnapprovedRenewal,
		"a restart while renewing makes no second request":            testRestartWhileRenewing,
		"a crash anywhere in a renewal loses nothing":                 testRenewalCrashes,
		"moves to another hub with the bootstrap kubeconfig":          testOtherHub,
		"reports a failing renewal on the hub":                        testRenewalDenied,
		"a shorter lifetime replaces the certificate once":            testShorterLifetime,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// quickLease makes the heartbeat of a cluster fast enough to see it.
func (h *hub) quickLease(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, "the lease duration", func() (bool, error) {
		mc := h.cluster(t, cluster)
		mc.Spec.LeaseDurationSeconds = 2
		return true, h.admin.Update(t.Context(), mc)
	})
}

// testRenewals also shows that what was begun with the first certificate goes on
// with the next ones.
func testRenewals(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "renews")
	c := s.moveClock(t)
	lent := make(chan client.Reader, 10)
	s.config.Extensions = []agent.Extension{func(inner ctrl.Manager, _ string) error {
		lent <- inner.GetAPIReader()
		return nil
	}}
	p := s.start(t)
	h.join(t, p, "renews")
	h.quickLease(t, "renews")
	h.renewals(t, "renews")
	p.reaches(t, agent.Running)
	extension := <-lent
	s.awaitRest(t, c, c.Start)
	for renewals := 1; renewals <= 3; renewals++ {
		before, cert := s.certificate(t, names.HubKubeconfigSecret), s.identify(t, names.HubKubeconfigSecret)
		due := at(before, 0.8)
		if half := c.Now().Add(before.NotAfter.Sub(c.Now()) / 2); half.After(due) {
			due = half // The signer goes by its own clock.
		}
		c.SetTime(due)
		eventually(t, "a renewal", func() (bool, error) { return s.identify(t, names.HubKubeconfigSecret) != cert, nil })
		s.awaitRest(t, c, due)
		cert = s.identify(t, names.HubKubeconfigSecret)
		eventually(t, "a heartbeat with the new certificate", func() (bool, error) { return h.used(t, cert, "update leases renews"), nil })
		if err := extension.Get(t.Context(), client.ObjectKey{Name: "renews"}, &clusterv1.ManagedCluster{}); err != nil {
			t.Errorf("an extension: %v", err)
		}
		eventually(t, "the extension to use the new certificate", func() (bool, error) { return h.used(t, cert, "get managedclusters renews"), nil })
		if got := p.metric(t, "ocm_agent_renewals_total", "success"); got != float64(renewals+1) {
			t.Errorf("%v credentials were obtained with %d renewals", got, renewals)
		}
	}
	p.reaches(t, agent.Running)
	if n := len(lent); n != 0 {
		t.Errorf("extensions were begun again %d times", n)
	}
	// The watch goes on as well.
	h.deny(t, "renews")
	p.reaches(t, agent.Rejected)
}

// testShorterLifetime starts an agent again that is to ask for a shorter lifetime than that
// of its certificate.
func testShorterLifetime(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "shorter")
	p := s.start(t)
	h.join(t, p, "shorter")
	h.renewals(t, "shorter")
	p.reaches(t, agent.Running)
	p.stop()
	long := s.certificate(t, names.HubKubeconfigSecret)
	s.config.NewDriver = func(id driver.Identity) driver.Agent {
		return csr.NewAgent(csr.AgentConfig{Identity: id, ExpirationSeconds: 3600, Clock: s.config.Clock})
	}
	for range 2 { // The second start finds what it is to ask for.
		p = s.start(t)
		eventually(t, "the shorter certificate", func() (bool, error) {
			short := s.certificate(t, names.HubKubeconfigSecret)
			return short.NotAfter.Before(long.NotAfter.Add(-time.Hour)), nil
		})
		p.reaches(t, agent.Running)
		p.stop()
	}
	if n := len(h.csrs(t, "shorter")); n != 2 {
		t.Errorf("%d CSRs, want the first and one renewal", n)
	}
}

// testExpired starts an agent that was away until its certificate had expired.
func testExpired(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "sleeps")
	p := s.start(t)
	h.join(t, p, "sleeps")
	p.stop()
	s.expire(t)
	p = s.start(t)
	p.reaches(t, agent.Requested)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "kubectl ocm accept --clusters sleeps")
	h.approve(t, "sleeps")
	p.reaches(t, agent.Running)
	if n := len(h.csrs(t, "sleeps")); n != 2 {
		t.Errorf("%d CSRs, want the first and one more", n)
	}
}

// expire replaces the stored certificate by one that only differs in that it has
// expired. The agent can see that by itself.
func (s *spoke) expire(t *testing.T) {
	t.Helper()
	secret := s.secret(t, names.HubKubeconfigSecret)
	key, err := pemutil.ParseKey(secret.Data[names.KeyTLSKey])
	if err != nil {
		t.Fatal(err)
	}
	old := *s.leaf(t, secret.Name)
	old.NotBefore, old.NotAfter = now().Add(-time.Hour), now().Add(-time.Second)
	raw, err := x509.CreateCertificate(rand.Reader, &old, &old, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[names.KeyTLSCert] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := s.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func testUnapprovedRenewal(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "unrenewed")
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, "unrenewed")
	p.reaches(t, agent.Running)
	s.fallDue(t, c)
	p.reaches(t, agent.Renewing)
	eventually(t, "the renewal request", func() (bool, error) { return len(h.csrs(t, "unrenewed")) == 2, nil })
	c.SetTime(at(s.certificate(t, names.HubKubeconfigSecret), 1).Add(time.Second))
	p.reaches(t, agent.Requested)
	if n := len(h.csrs(t, "unrenewed")); n != 2 {
		t.Errorf("%d CSRs, want the first and the renewal, which is the new request as well", n)
	}
}

func testRestartWhileRenewing(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "restarts")
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, "restarts")
	s.fallDue(t, c)
	p.reaches(t, agent.Renewing)
	eventually(t, "the renewal request", func() (bool, error) { return len(h.csrs(t, "restarts")) == 2, nil })
	p.stop()
	p = s.start(t)
	h.renewals(t, "restarts")
	eventually(t, "the renewal", func() (bool, error) {
		return p.metric(t, "ocm_agent_renewals_total", "success") > 0, nil
	})
	p.reaches(t, agent.Running)
	if n := len(h.csrs(t, "restarts")); n != 2 {
		t.Errorf("%d CSRs", n)
	}
}

// testRenewalCrashes ends the process after each write of a renewal: the
// pending key, the new credential, and forgetting the key.
func testRenewalCrashes(t *testing.T, h *hub) {
	t.Helper()
	renewing := []string{"POST secrets", "PUT " + names.HubKubeconfigSecret, "DELETE " + names.PendingCredentialSecret}
	for writes := 1; writes <= len(renewing); writes++ {
		cluster := fmt.Sprintf("recrash%d", writes)
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			s := newSpoke(t, h, cluster)
			p := s.start(t)
			h.join(t, p, cluster)
			h.renewals(t, cluster)
			p.stop()
			first := s.identify(t, names.HubKubeconfigSecret)
			s.moveClock(t).SetTime(at(s.certificate(t, names.HubKubeconfigSecret), 0.8))
			p = s.startUntil(t, writes)
			p.awaitCrash(t, renewing[:writes]...)
			if stored := writes > 1; stored {
				// The signer goes by its own clock, by which what is stored is new.
				s.config.Clock = clock.RealClock{}
			}
			p = s.start(t)
			eventually(t, "the new credential, and no request", func() (bool, error) {
				return s.identify(t, names.HubKubeconfigSecret) != first && s.secret(t, names.PendingCredentialSecret) == nil, nil
			})
			p.reaches(t, agent.Running)
			if n := len(h.csrs(t, cluster)); n != 2 {
				t.Errorf("%d CSRs, want the first and the renewal", n)
			}
			p.stop()
		})
	}
}

func testOtherHub(t *testing.T, h *hub) {
	t.Helper()
	other := newHub(t)
	t.Run("with a request that is not decided", func(t *testing.T) {
		t.Parallel()
		testOtherHubUndecided(t, other, h)
	})
	s := newSpoke(t, other, "moves")
	p := s.start(t)
	other.join(t, p, "moves")
	before := s.secret(t, names.HubKubeconfigSecret)
	s.setBootstrap(t, h.bootstrapKubeconfig(t))
	eventually(t, "a request at the new hub", func() (bool, error) { return len(h.csrs(t, "moves")) == 1, nil })
	// The new hub has refused the credential, so it stays the old hub's.
	if now := s.secret(t, names.HubKubeconfigSecret); now.ResourceVersion != before.ResourceVersion {
		t.Error("the old hub's credential was changed before the new hub issued one")
	}
	h.join(t, p, "moves")
	if own := restConfigOf(t, s.hubDir+"/kubeconfig"); own.Host != h.URL {
		t.Errorf("the files lead to %s, want %s", own.Host, h.URL)
	}
	if bytes.Equal(before.Data["tls.key"], s.secret(t, names.HubKubeconfigSecret).Data["tls.key"]) {
		t.Error("the key of the old hub's credential is used at the new one")
	}
	// And back, which is a new request: nothing of the old registration is kept.
	s.setBootstrap(t, other.bootstrapKubeconfig(t))
	eventually(t, "a second request at the first hub", func() (bool, error) { return len(other.csrs(t, "moves")) == 2, nil })
	other.approve(t, "moves")
	p.reaches(t, agent.Running)
}

// testOtherHubUndecided moves an agent while nobody has decided about its
// request: it asks the new hub with another key, also when it comes back.
func testOtherHubUndecided(t *testing.T, from, to *hub) {
	t.Helper()
	s := newSpoke(t, from, "undecided")
	p := s.start(t)
	p.reaches(t, agent.Requested)
	first := s.secret(t, names.PendingCredentialSecret)
	s.setBootstrap(t, to.bootstrapKubeconfig(t))
	eventually(t, "a request at the new hub", func() (bool, error) { return len(to.csrs(t, "undecided")) == 1, nil })
	second := s.secret(t, names.PendingCredentialSecret)
	if len(second.Data["tls.key"]) == 0 || bytes.Equal(first.Data["tls.key"], second.Data["tls.key"]) {
		t.Error("the pending key of one hub is used at another")
	}
	s.setBootstrap(t, from.bootstrapKubeconfig(t))
	eventually(t, "a second request at the first hub", func() (bool, error) { return len(from.csrs(t, "undecided")) == 2, nil })
	p.stop()
}

// testRenamedHub changes how the bootstrap kubeconfig leads to the same hub.
func testRenamedHub(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "renamed")
	p := s.start(t)
	h.join(t, p, "renamed")
	before := s.secret(t, names.HubKubeconfigSecret)
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte("local"), []byte("another")))
	eventually(t, "the new hub kubeconfig", func() (bool, error) {
		return bytes.Contains(s.secret(t, names.HubKubeconfigSecret).Data["kubeconfig"], []byte("another")), nil
	})
	p.reaches(t, agent.Running)
	after := s.secret(t, names.HubKubeconfigSecret)
	if !bytes.Equal(before.Data["tls.key"], after.Data["tls.key"]) || len(h.csrs(t, "renamed")) != 1 {
		t.Errorf("the credential was not kept; %d CSRs", len(h.csrs(t, "renamed")))
	}
	s.checkFiles(t, h)
}

func testRenewalDenied(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "halts")
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, "halts")
	first := h.csrs(t, "halts")[0]
	// Its own, which nobody decides about.
	user := names.AgentUser("halts", string(s.secret(t, names.HubKubeconfigSecret).Data["agent-name"]))
	itself := h.ClientFor(t, h.ConfigFor(t, user, names.ClusterGroup("halts"), names.GroupManagedClusters))
	for i := range 10 {
		request := first.DeepCopy()
		request.ObjectMeta = metav1.ObjectMeta{Name: "halts-" + string(rune('a'+i)), Labels: first.Labels}
		create(t, itself, request)
	}
	s.fallDue(t, c)
	var got *metav1.Condition
	eventually(t, "the condition", func() (bool, error) {
		got = apimeta.FindStatusCondition(h.cluster(t, "halts").Status.Conditions, names.ConditionCertificateRotated)
		return got != nil && got.Status == metav1.ConditionFalse, nil
	})
	if got.Reason != names.ReasonCertificateFailed || got.Message != "Stop creating csr since there are too many csr created already on hub" {
		t.Errorf("got %+v", got)
	}
	p.stop()
}

func TestHubRestart(t *testing.T) {
	t.Parallel()
	h, plane := newMortalHub(t, controlplane.WithCertDuration(longLife))
	s := newSpoke(t, h, "hubrestart")
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, "hubrestart")
	h.quickLease(t, "hubrestart")
	s.fallDue(t, c)
	p.reaches(t, agent.Renewing)
	eventually(t, "the renewal request", func() (bool, error) { return len(h.csrs(t, "hubrestart")) == 2, nil })
	stopped := c.Now()
	plane.StopAPIServer(t)
	// What it waits for then is the watch of its request, or, if the hub's answer was lost,
	// the next try to make it.
	eventually(t, "the agent to notice that the hub is away", func() (bool, error) {
		return c.Waiting(stopped, func(d time.Duration) bool { return d <= time.Second }), nil
	})
	plane.StartAPIServer(t)
	before := h.lease(t, "hubrestart")
	eventually(t, "the lease to be renewed", func() (bool, error) {
		return h.lease(t, "hubrestart").After(before), nil
	})
	h.renewals(t, "hubrestart")
	eventually(t, "the renewal", func() (bool, error) {
		return p.metric(t, "ocm_agent_renewals_total", "success") >= 2, nil
	})
	p.reaches(t, agent.Running)
	if n := len(h.csrs(t, "hubrestart")); n != 2 {
		t.Errorf("%d CSRs", n)
	}
	eventually(t, "the renewal to be told", func() (bool, error) {
		return apimeta.IsStatusConditionTrue(h.cluster(t, "hubrestart").Status.Conditions, names.ConditionCertificateRotated), nil
	})
}
