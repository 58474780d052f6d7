package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/clocks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// longLife is the life of certificates where a clock is moved: a thousandth of
// it is longer than any test takes.
const longLife = 8000 * time.Hour

// TestRenewalPoints moves the agent's clock through the life of each credential
// and sees when it is renewed without anybody's asking.
func TestRenewalPoints(t *testing.T) {
	t.Parallel()
	h := newHub(t, controlplane.WithCertDuration(longLife))
	h.serveAddOns(t)
	for name, test := range map[string]func(*testing.T, *hub){
		"the cluster's certificate with 20 to 25 % left": testClusterPoint,
		"an add-on's certificate with 20 to 25 % left":   testAddOnCertificatePoint,
		"an add-on's token with 20 to 30 % left":         testAddOnTokenPoint,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// at is the time when a part of a credential's life is used.
func at(v credential.Validity, used float64) time.Time {
	return v.NotBefore.Add(time.Duration(used * float64(v.Lifetime())))
}

// leaf is the certificate that a Secret holds.
func (s *spoke) leaf(t *testing.T, secret string) *x509.Certificate {
	t.Helper()
	certs, err := pemutil.ParseCertificates(s.secret(t, secret).Data[names.KeyTLSCert])
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

// certificate is when what a Secret holds is valid. Two that were issued within
// a second do not differ in that.
func (s *spoke) certificate(t *testing.T, secret string) credential.Validity {
	t.Helper()
	leaf := s.leaf(t, secret)
	return credential.Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
}

// identify returns what the hub's audit log calls the certificate in a Secret.
func (s *spoke) identify(t *testing.T, secret string) string {
	t.Helper()
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(s.leaf(t, secret).Raw))
}

func testClusterPoint(t *testing.T, h *hub) {
	t.Helper()
	s := newSpoke(t, h, "point")
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, s.cluster)
	s.awaitRest(t, c, c.Start)

	first, cert := s.certificate(t, names.HubKubeconfigSecret), s.identify(t, names.HubKubeconfigSecret)
	early := at(first, 0.749)
	c.SetTime(early)
	eventually(t, "the agent to look at its certificate", func() (bool, error) {
		return c.Waiting(early, clusterRests) || len(h.csrs(t, s.cluster)) > 1, nil
	})
	if n := len(h.csrs(t, s.cluster)); n != 1 {
		t.Fatalf("with more than 25 %% of the life left there are %d CSRs", n)
	}
	c.SetTime(at(first, 0.8))
	eventually(t, "the renewal request", func() (bool, error) { return len(h.csrs(t, s.cluster)) == 2, nil })
	h.approve(t, s.cluster)
	eventually(t, "the new certificate", func() (bool, error) { return s.identify(t, names.HubKubeconfigSecret) != cert, nil })
}

// onAddOn runs an agent whose add-on has a credential, on a clock of its own.
func onAddOn(t *testing.T, h *hub, cluster string, auth driver.AuthType) (*spoke, *clocks.Moved) {
	t.Helper()
	s := newSpoke(t, h, cluster)
	s.withAddOns(t, auth)
	c := s.moveClock(t)
	p := s.start(t)
	h.join(t, p, cluster)
	t.Cleanup(func() { h.logAddOn(t, s) })
	h.register(t, s, "one")
	if auth == driver.Token {
		h.serveToken(t, s, "one")
	} else {
		eventually(t, "the add-on's request", func() (bool, error) { return len(h.addOnCSRs(t, cluster)) == 1, nil })
		h.approve(t, cluster)
	}
	eventually(t, "the add-on to rest", func() (bool, error) { return c.Waiting(c.Start, addOnRests), nil })
	return s, c
}

// logAddOn logs, after a failure, what the agent said of its add-on.
func (h *hub) logAddOn(t *testing.T, s *spoke) {
	t.Helper()
	addOn := &addonv1beta1.ManagedClusterAddOn{}
	if t.Failed() {
		err := h.admin.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: s.cluster, Name: "one"}, addOn)
		t.Logf("the add-on's status is %s, %v", mustJSON(t, addOn.Status), err)
	}
}

// addOnCSRs are the CSRs of a cluster that are for an add-on.
func (h *hub) addOnCSRs(t *testing.T, cluster string) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	return slices.DeleteFunc(h.csrs(t, cluster), func(c certificatesv1.CertificateSigningRequest) bool {
		return c.Labels[names.LabelAddOnName] == ""
	})
}

// lookAt moves the clock and has the agent look at its add-on.
func (h *hub) lookAt(t *testing.T, s *spoke, c *clocks.Moved, to time.Time) {
	t.Helper()
	c.SetTime(to)
	h.addOn(t, s, "one", func(addOn *addonv1beta1.ManagedClusterAddOn) error {
		metav1.SetMetaDataAnnotation(&addOn.ObjectMeta, "example.com/touched", to.String())
		return h.admin.Update(t.Context(), addOn)
	})
}

// dueAt moves the clock and waits until something was done because of the time
// alone. Whoever looked at the clock just before it was moved sleeps for a day.
func dueAt(t *testing.T, c *clocks.Moved, to time.Time, what string, done func() bool) {
	t.Helper()
	c.SetTime(to)
	late := to.Add(25 * time.Hour)
	eventually(t, what, func() (bool, error) {
		if done() {
			return true, nil
		}
		if c.Now().Before(late) {
			c.Step(15 * time.Minute)
		}
		return false, nil
	})
}

func testAddOnCertificatePoint(t *testing.T, h *hub) {
	t.Helper()
	s, c := onAddOn(t, h, "addonpoint", driver.CSR)
	secret := names.AddOnHubKubeconfigSecret("one")
	first, cert := s.certificate(t, secret), s.identify(t, secret)
	early := at(first, 0.749)
	h.lookAt(t, s, c, early)
	eventually(t, "the agent to look at the add-on's certificate", func() (bool, error) {
		return c.Waiting(early, addOnRests) || len(h.addOnCSRs(t, s.cluster)) > 1, nil
	})
	if n := len(h.addOnCSRs(t, s.cluster)); n != 1 {
		t.Fatalf("with more than 25 %% of the life left there are %d CSRs", n)
	}
	dueAt(t, c, at(first, 0.8), "the renewal request", func() bool { return len(h.addOnCSRs(t, s.cluster)) == 2 })
	h.approve(t, s.cluster)
	eventually(t, "the new certificate", func() (bool, error) { return s.identify(t, secret) != cert, nil })
}

func testAddOnTokenPoint(t *testing.T, h *hub) {
	t.Helper()
	s, c := onAddOn(t, h, "tokenpoint", driver.Token)
	secret := s.secret(t, names.AddOnHubKubeconfigSecret("one"))
	token := func() []byte { return s.secret(t, secret.Name).Data[names.KeyToken] }
	expires, err := time.Parse(time.RFC3339, string(secret.Data[names.KeyExpiration]))
	if err != nil {
		t.Fatal(err)
	}
	first := credential.Validity{NotBefore: expires.Add(-tokenSeconds * time.Second), NotAfter: expires}
	user := names.AgentUser(s.cluster, string(s.secret(t, names.HubKubeconfigSecret).Data[names.KeyAgentName]))
	// issued is how many tokens the hub issued to the agent.
	issued := func() int {
		writes := h.writes(t, s.cluster, user)
		return len(slices.DeleteFunc(writes, func(w string) bool { return w != "create serviceaccounts/token" }))
	}
	if n := issued(); n != 1 {
		t.Fatalf("%d tokens were issued at first", n)
	}
	early := at(first, 0.699)
	h.lookAt(t, s, c, early)
	eventually(t, "the agent to look at the token", func() (bool, error) { return c.Waiting(early, addOnRests) || issued() > 1, nil })
	if n := issued(); n != 1 || !bytes.Equal(token(), secret.Data[names.KeyToken]) {
		t.Fatalf("with more than 30 %% of the life left %d tokens are issued", n)
	}
	due := at(first, 0.8)
	dueAt(t, c, due, "another token", func() bool { return !bytes.Equal(token(), secret.Data[names.KeyToken]) })
	eventually(t, "the agent to rest", func() (bool, error) { return c.Waiting(due, addOnRests), nil })
	if n := issued(); n != 2 {
		t.Errorf("%d tokens were issued for one refresh", n-1)
	}
	var who authenticationv1.SelfSubjectReview
	if err := h.ClientFor(t, h.ConfigForToken(string(token()))).Create(t.Context(), &who); err != nil || who.Status.UserInfo.Username == "" {
		t.Errorf("the hub takes the new token for %q, %v", who.Status.UserInfo.Username, err)
	}
}
