package csr_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
)

var (
	self  = driver.Identity{Cluster: "cluster1", Agent: "agent1"}
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// world is a hub that is only an object store, and an agent.
type world struct {
	hub     client.WithWatch
	clock   *testingclock.FakePassiveClock
	agent   *csr.Agent
	pending driver.Data
}

// newHub says that who asks is "me".
func newHub() client.WithWatch {
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, hub client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "me"
				return nil
			}
			return hub.Create(ctx, o, opts...)
		},
	}).Build()
}

func newWorld() *world {
	w := &world{hub: newHub(), clock: testingclock.NewFakePassiveClock(epoch)}
	w.agent = csr.NewAgent(csr.AgentConfig{Identity: self, ExpirationSeconds: 3600, Clock: w.clock})
	return w
}

// step takes steps until one waits or is done.
func (w *world) step(t *testing.T) driver.Step {
	t.Helper()
	return w.steps(t, func() (driver.Step, error) { return w.agent.Obtain(t.Context(), w.hub, w.pending) })
}

// steps takes steps of a driver until one waits or is done.
func (w *world) steps(t *testing.T, obtain func() (driver.Step, error)) driver.Step {
	t.Helper()
	for range 10 {
		step, err := obtain()
		if err != nil {
			t.Fatal(err)
		}
		w.pending = step.Pending
		if !step.Again {
			return step
		}
	}
	t.Fatal("ten steps and no end")
	return driver.Step{}
}

func (w *world) csrs(t *testing.T) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := w.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (w *world) decide(t *testing.T, name string, typ certificatesv1.RequestConditionType, certificate []byte) {
	t.Helper()
	var c certificatesv1.CertificateSigningRequest
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: name}, &c); err != nil {
		t.Fatal(err)
	}
	c.Status.Conditions = append(c.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: typ, Status: corev1.ConditionTrue, Message: "because", LastUpdateTime: metav1.NewTime(w.clock.Now()),
	})
	c.Status.Certificate = certificate
	if err := w.hub.Status().Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
}

// sign makes a certificate with the template's fields.
func sign(t *testing.T, pub crypto.PublicKey, template *x509.Certificate) []byte {
	t.Helper()
	ca, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, template, template, pub, ca)
	if err != nil {
		t.Fatal(err)
	}
	return pemutil.EncodeCertificate(der)
}

func agentCertificate() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{
			CommonName:   "system:open-cluster-management:cluster1:agent1",
			Organization: []string{"system:open-cluster-management:managed-clusters", "system:open-cluster-management:cluster1"},
		},
		NotBefore:   epoch.Add(-time.Minute),
		NotAfter:    epoch.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func requestKey(t *testing.T, c certificatesv1.CertificateSigningRequest) crypto.PublicKey {
	t.Helper()
	parsed, err := pemutil.ParseRequest(c.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.PublicKey
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld()
	step := w.step(t)
	if step.Waiting.Reason != csr.ReasonRequested || !strings.Contains(step.Waiting.Message, "kubectl ocm accept --clusters cluster1") || !strings.Contains(step.Waiting.Message, "SHA256:") {
		t.Errorf("waiting: %+v", step.Waiting)
	}
	got := w.csrs(t)[0]
	if !strings.HasPrefix(got.Name, "cluster1-") || got.Spec.SignerName != "kubernetes.io/kube-apiserver-client" || *got.Spec.ExpirationSeconds != 3600 {
		t.Errorf("got %+v", got)
	}
	if want := map[string]string{"open-cluster-management.io/cluster-name": "cluster1"}; fmt.Sprint(got.Labels) != fmt.Sprint(want) {
		t.Errorf("labels %v, want %v", got.Labels, want)
	}
	if fmt.Sprint(got.Spec.Usages) != "[digital signature key encipherment client auth]" {
		t.Errorf("usages %v", got.Spec.Usages)
	}
	parsed, err := pemutil.ParseRequest(got.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Subject.CommonName != "system:open-cluster-management:cluster1:agent1" ||
		fmt.Sprint(parsed.Subject.Organization) != "[system:open-cluster-management:cluster1 system:open-cluster-management:managed-clusters]" {
		t.Errorf("subject %v", parsed.Subject)
	}
	if key, ok := parsed.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("key %T", parsed.PublicKey)
	}
}

func TestNoExpirationUnlessAsked(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.agent = csr.NewAgent(csr.AgentConfig{Identity: self, Clock: w.clock})
	w.step(t)
	if got := w.csrs(t)[0].Spec.ExpirationSeconds; got != nil {
		t.Errorf("expirationSeconds is %d", *got)
	}
}

func TestRestartsMakeOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for range 20 { // Every one is a new process with what the last one stored.
		w.agent = csr.NewAgent(csr.AgentConfig{Identity: self, Clock: w.clock})
		step, err := w.agent.Obtain(t.Context(), w.hub, w.pending)
		if err != nil {
			t.Fatal(err)
		}
		w.pending = step.Pending
	}
	if got := len(w.csrs(t)); got != 1 {
		t.Errorf("%d CSRs", got)
	}
	w.agent = csr.NewAgent(csr.AgentConfig{Identity: driver.Identity{Cluster: "cluster1", Agent: "agent2"}, Clock: w.clock})
	w.step(t)
	if got := w.csrs(t); len(got) != 2 || samePublic(requestKey(t, got[0]), requestKey(t, got[1])) {
		t.Errorf("another agent must ask with another key: %d CSRs", len(got))
	}
}

func samePublic(a, b crypto.PublicKey) bool {
	key, ok := a.(*ecdsa.PublicKey)
	return ok && key.Equal(b)
}

func TestLostRequestIsMadeAgainWithTheSameName(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.step(t)
	first := w.csrs(t)[0]
	if err := w.hub.Delete(t.Context(), &first); err != nil { // As Kubernetes does after a day.
		t.Fatal(err)
	}
	w.step(t)
	if got := w.csrs(t); len(got) != 1 || got[0].Name != first.Name {
		t.Errorf("got %d, %s; want %s", len(got), got[0].Name, first.Name)
	}
}

func TestTakenName(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.step(t)
	first := w.csrs(t)[0]
	other := newWorld()
	other.step(t)
	first.Spec.Request = other.csrs(t)[0].Spec.Request
	if err := w.hub.Update(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	w.step(t)
	if got := w.csrs(t); len(got) != 2 {
		t.Errorf("%d CSRs, want a second one with a new name", len(got))
	}
}

func TestDenialBacksOffThenRetries(t *testing.T) {
	t.Parallel()
	for typ, reason := range map[certificatesv1.RequestConditionType]string{
		certificatesv1.CertificateDenied: csr.ReasonRefused,
		certificatesv1.CertificateFailed: csr.ReasonFailed,
	} {
		t.Run(string(typ), func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.step(t)
			for n := 1; n <= 5; n++ {
				got := w.csrs(t)
				if len(got) != n {
					t.Fatalf("%d CSRs before refusal %d", len(got), n)
				}
				w.decide(t, string(w.pending["csr-name"]), typ, nil)
				step := w.step(t)
				if step.Waiting.Reason != reason || !step.Failing || !strings.Contains(step.Waiting.Message, "because") || step.After <= 0 {
					t.Fatalf("got %+v", step.Waiting)
				}
				// Twice as long after each, less up to half and what the hub's date lacks of a second.
				if most := 10 * time.Second << (n - 1); step.After > most || step.After < most/2-time.Second {
					t.Errorf("waits %v after %d refusals, want between %v and %v", step.After, n, most/2, most)
				}
				w.clock.SetTime(w.clock.Now().Add(step.After - time.Second))
				if again := w.step(t); again.After != time.Second || len(w.csrs(t)) != n {
					t.Fatalf("asked anew before its time: %+v", again.Waiting)
				}
				w.clock.SetTime(w.clock.Now().Add(time.Second))
				if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested {
					t.Fatalf("got %+v", step.Waiting)
				}
			}
		})
	}
}

// asking is a CSR that a requester made for a user.
func asking(t *testing.T, name, requester, user string, labels map[string]string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: requester,
			Request:  signed(t, newKey(t), &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}),
		},
	}
}

func TestHaltsAtTenOpenRequests(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const user = "system:open-cluster-management:cluster1:agent1"
	make10 := func(prefix string, labels map[string]string, certificate []byte) {
		for i := range 10 {
			c := asking(t, fmt.Sprint(prefix, i), "me", user, labels)
			if err := w.hub.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if certificate != nil {
				w.decide(t, c.Name, certificatesv1.CertificateApproved, certificate)
			}
		}
	}
	make10("addon", map[string]string{names.LabelClusterName: "cluster1", names.LabelAddOnName: "x"}, nil)
	make10("other", map[string]string{names.LabelClusterName: "cluster2"}, nil)
	make10("issued", map[string]string{names.LabelClusterName: "cluster1"}, []byte("x"))
	// What a neighbour or the holder of a bootstrap token makes halts nobody else.
	for i := range 10 {
		for _, c := range []*certificatesv1.CertificateSigningRequest{
			asking(t, fmt.Sprint("labelled", i), "me", "system:open-cluster-management:cluster2:agent1", map[string]string{names.LabelClusterName: "cluster1"}),
			asking(t, fmt.Sprint("forged", i), "neighbour", user, map[string]string{names.LabelClusterName: "cluster1"}),
		} {
			if err := w.hub.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested {
		t.Fatalf("got %+v", step.Waiting)
	}
	make10("open", map[string]string{names.LabelClusterName: "cluster1"}, nil)
	w.pending = nil
	step := w.step(t)
	if step.Waiting.Reason != csr.ReasonHalted || !step.Failing || step.After <= 0 || len(w.csrs(t)) != 61 {
		t.Errorf("got %+v, %d CSRs", step.Waiting, len(w.csrs(t)))
	}
	if err := w.hub.DeleteAllOf(t.Context(), &certificatesv1.CertificateSigningRequest{}, client.MatchingLabels{names.LabelClusterName: "cluster1"}); err != nil {
		t.Fatal(err)
	}
	if step := w.step(t); step.Waiting.Reason != csr.ReasonRequested {
		t.Errorf("did not go on: %+v", step.Waiting)
	}
}

func TestIssued(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.step(t)
	request := w.csrs(t)[0]
	w.decide(t, request.Name, certificatesv1.CertificateApproved, nil)
	if step := w.step(t); step.Waiting.Reason != csr.ReasonApproved || step.Issued != nil {
		t.Fatalf("got %+v", step.Waiting)
	}
	certificate := sign(t, requestKey(t, request), agentCertificate())
	w.decide(t, request.Name, certificatesv1.CertificateApproved, certificate)
	step := w.step(t)
	if step.Issued == nil {
		t.Fatalf("got %+v", step.Waiting)
	}
	validity, err := w.agent.Inspect(step.Issued.Data)
	if err != nil || validity != step.Issued.Validity || !validity.NotAfter.Equal(epoch.Add(time.Hour)) {
		t.Errorf("got %+v, %v", validity, err)
	}
}

func TestUnfitCertificates(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*x509.Certificate){
		"expired":            func(c *x509.Certificate) { c.NotAfter = epoch },
		"far in the future":  func(c *x509.Certificate) { c.NotBefore = epoch.Add(10 * time.Minute) },
		"of another cluster": func(c *x509.Certificate) { c.Subject.CommonName = "system:open-cluster-management:cluster2:agent1" },
		"of another agent":   func(c *x509.Certificate) { c.Subject.CommonName = "system:open-cluster-management:cluster1:agent2" },
		"with a group more":  func(c *x509.Certificate) { c.Subject.Organization = append(c.Subject.Organization, "system:masters") },
		"with a group less":  func(c *x509.Certificate) { c.Subject.Organization = c.Subject.Organization[:1] },
		"for servers":        func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
		"of another key":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.step(t)
			request := w.csrs(t)[0]
			pub, cert := requestKey(t, request), agentCertificate()
			if change != nil {
				change(cert)
			} else {
				key, _, err := pemutil.NewKey()
				if err != nil {
					t.Fatal(err)
				}
				pub = key.Public()
			}
			w.decide(t, request.Name, certificatesv1.CertificateApproved, sign(t, pub, cert))
			step := w.step(t)
			if step.Issued != nil || step.Waiting.Reason != csr.ReasonUnfit || !step.Failing {
				t.Errorf("got %+v", step.Waiting)
			}
			w.clock.SetTime(epoch.Add(time.Minute))
			if w.step(t); len(w.csrs(t)) != 2 {
				t.Error("did not ask anew")
			}
		})
	}
}

func TestInspectProblems(t *testing.T) {
	t.Parallel()
	key, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, key.Public(), agentCertificate())
	other := agentCertificate()
	other.Subject.CommonName = "system:open-cluster-management:cluster1:agent9"
	for _, tc := range []struct {
		name string
		data driver.Data
		want error
	}{
		{name: "nothing", want: credential.ErrMissing},
		{name: "no key", data: driver.Data{"tls.crt": good}, want: credential.ErrMissing},
		{name: "no certificate", data: driver.Data{"tls.key": keyPEM}, want: credential.ErrMissing},
		{name: "no PEM", data: driver.Data{"tls.key": keyPEM, "tls.crt": []byte("x")}, want: credential.ErrMalformed},
		{name: "keys swapped", data: driver.Data{"tls.key": good, "tls.crt": keyPEM}, want: credential.ErrMalformed},
		{name: "another agent", data: driver.Data{"tls.key": keyPEM, "tls.crt": sign(t, key.Public(), other)}, want: credential.ErrWrongIdentity},
		{name: "good", data: driver.Data{"tls.key": keyPEM, "tls.crt": good}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := newWorld().agent.Inspect(tc.data)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error shows key material: %v", err)
			}
		})
	}
}

// TestHubErrorsKeepThePendingData: whichever call the hub fails, the error is
// told and the request is the same one afterwards.
func TestHubErrorsKeepThePendingData(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	for call, funcs := range map[string]interceptor.Funcs{
		"get": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		}},
		"list":   {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return down }},
		"create": {Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return down }},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			first, err := w.agent.Obtain(t.Context(), w.hub, nil)
			if err != nil {
				t.Fatal(err)
			}
			step, err := w.agent.Obtain(t.Context(), interceptor.NewClient(w.hub, funcs), first.Pending)
			if !errors.Is(err, down) {
				t.Errorf("got %v, want what the hub said", err)
			}
			if diff := cmp.Diff(first.Pending, step.Pending); diff != "" {
				t.Error("the pending request changed") // The difference would show a key.
			}
			w.pending = step.Pending
			if w.step(t); len(w.csrs(t)) != 1 || w.csrs(t)[0].Name != string(first.Pending["csr-name"]) {
				t.Errorf("afterwards there are %d requests", len(w.csrs(t)))
			}
		})
	}
}

// FuzzInspect feeds what somebody else may have put into the Secret.
func FuzzInspect(f *testing.F) {
	f.Add([]byte("x"), []byte("y"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"), []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, key, cert []byte) {
		w := newWorld()
		if _, err := w.agent.Inspect(driver.Data{"tls.key": key, "tls.crt": cert}); err == nil {
			t.Error("it took something for a credential")
		}
		step, err := w.agent.Obtain(t.Context(), w.hub, driver.Data{"tls.key": key, "csr-name": cert, "refusals": cert})
		if err != nil || !step.Again {
			t.Errorf("it did not begin anew: %v", err)
		}
	})
}
