package agent_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// shortLife is the life of certificates where renewals are watched. All that
// matters is relative to it, so ten minutes would show the same in more time.
const shortLife = 24 * time.Second

func TestRenewal(t *testing.T) {
	t.Parallel()
	h := newHub(t, controlplane.WithCertDuration(shortLife))
	for name, test := range map[string]func(*testing.T, *hub){
		"renews again and again without a gap in the lease":    testRenewals,
		"registers again after a sleep beyond the expiry":      testLongSleep,
		"registers again in process when nobody renews":        testNobodyRenews,
		"a restart while renewing makes no second request":     testRestartWhileRenewing,
		"a crash anywhere in a renewal loses nothing":          testRenewalCrashes,
		"moves to another hub with the bootstrap kubeconfig":   testOtherHub,
		"the hub's words tell of a renewal that does not work": testRenewalDenied,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// leaseSeconds is the lease duration of a quick lease.
const leaseSeconds = 2

// quickLease makes the heartbeat of a cluster fast enough to see gaps.
func (h *hub) quickLease(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, "the lease duration", func() (bool, error) {
		mc := h.cluster(t, cluster)
		mc.Spec.LeaseDurationSeconds = leaseSeconds
		return true, h.admin.Update(t.Context(), mc)
	})
}

func (s *spoke) notAfter(t *testing.T) time.Time {
	t.Helper()
	secret := s.secret(t, names.HubKubeconfigSecret)
	if secret == nil {
		return time.Time{}
	}
	certs, err := pemutil.ParseCertificates(secret.Data["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	return certs[0].NotAfter
}

func testRenewals(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "renews")
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
	first := s.notAfter(t)
	seen := map[agent.Phase]bool{}
	last := now()
	var widest time.Duration
	var renewed time.Time
	// Beyond the expiry of the second certificate only renewed ones work.
	for end := first.Add(shortLife); now().Before(end); sleep(100 * time.Millisecond) {
		seen[p.agent.Report().Phase] = true
		if at := h.lease(t, "renews"); !at.Equal(last) {
			if !renewed.IsZero() {
				widest = max(widest, at.Sub(renewed))
			}
			last, renewed = at, at
		}
	}
	if grace := 5 * leaseSeconds * time.Second; widest >= grace || now().Sub(renewed) >= grace {
		t.Errorf("the lease was not renewed for %v, the hub gives up after %v", max(widest, now().Sub(renewed)), grace)
	}
	for phase := range seen {
		if phase != agent.Running && phase != agent.Renewing {
			t.Errorf("the agent was %s between", phase)
		}
	}
	if !s.notAfter(t).After(first.Add(shortLife / 2)) {
		t.Errorf("the certificate is good until %v, the first was until %v", s.notAfter(t), first)
	}
	if got := p.metric(t, "ocm_agent_renewals_total", "success"); got < 3 {
		t.Errorf("%v credentials were obtained", got)
	}
	// What was begun with the first certificate goes on with the last.
	if n := len(lent); n != 1 {
		t.Errorf("extensions were begun %d times", n)
	}
	if err := (<-lent).Get(t.Context(), client.ObjectKey{Name: "renews"}, &clusterv1.ManagedCluster{}); err != nil {
		t.Errorf("an extension: %v", err)
	}
	// The watch goes on as well.
	h.deny(t, "renews")
	p.reaches(t, agent.Rejected)
}

func testLongSleep(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "sleeps")
	p := s.start(t)
	h.join(t, p, "sleeps")
	p.stop()
	sleep(s.notAfter(t).Add(time.Second).Sub(now()))
	p = s.start(t)
	p.reaches(t, agent.Requested)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "kubectl ocm accept --clusters sleeps")
	h.approve(t, "sleeps")
	p.reaches(t, agent.Running)
	if n := len(h.csrs(t, "sleeps")); n != 2 {
		t.Errorf("%d CSRs, want the first and one more", n)
	}
}

func testNobodyRenews(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "forgotten")
	p := s.start(t)
	h.join(t, p, "forgotten")
	p.reaches(t, agent.Running)
	p.reaches(t, agent.Renewing)
	p.reaches(t, agent.Requested) // The certificate ended.
	if n := len(h.csrs(t, "forgotten")); n != 2 {
		t.Errorf("%d CSRs, want the first and the renewal, which is the new request as well", n)
	}
	h.approve(t, "forgotten")
	p.reaches(t, agent.Running)
}

func testRestartWhileRenewing(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "restarts")
	p := s.start(t)
	h.join(t, p, "restarts")
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
			p = s.startUntil(t, writes)
			p.awaitCrash(t, renewing[:writes]...)
			p = s.start(t)
			eventually(t, "the renewal", func() (bool, error) {
				return p.metric(t, "ocm_agent_renewals_total", "success") > 0, nil
			})
			p.reaches(t, agent.Running)
			// Where the credential was stored before the crash, the process after
			// it does not know when it was issued, finds it due, and renews it.
			if n := len(h.csrs(t, cluster)); n > 3 || (writes == 1 && n != 2) {
				t.Errorf("%d CSRs", n)
			}
			if s.secret(t, names.PendingCredentialSecret) != nil {
				t.Error("the request is still stored")
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
	p := s.start(t)
	h.join(t, p, "halts")
	first := h.csrs(t, "halts")[0]
	// Its own, which nobody decides about.
	user := names.AgentUser("halts", string(s.secret(t, names.HubKubeconfigSecret).Data["agent-name"]))
	itself := h.ClientFor(t, h.ConfigFor(t, user, names.ClusterGroup("halts"), names.GroupManagedClusters))
	for i := range 10 {
		c := first.DeepCopy()
		c.ObjectMeta = metav1.ObjectMeta{Name: "halts-" + string(rune('a'+i)), Labels: first.Labels}
		create(t, itself, c)
	}
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
	h := newHub(t, controlplane.WithCertDuration(80*time.Second))
	s := newSpoke(t, h, "hubrestart")
	p := s.start(t)
	h.join(t, p, "hubrestart")
	h.quickLease(t, "hubrestart")
	p.reaches(t, agent.Renewing)
	h.StopAPIServer(t)
	sleep(2 * time.Second) // Let requests fail; nothing is checked by this.
	h.StartAPIServer(t)
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
