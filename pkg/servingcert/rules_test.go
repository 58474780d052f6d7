package servingcert_test

import (
	"bytes"
	"crypto/x509"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/servingcert"
)

func began() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func rules() servingcert.Rules { return servingcert.DefaultRules("service", "namespace") }

// world is what there is, as the issuer would have it.
type world struct {
	servingcert.State

	now  time.Time
	next time.Time
}

// pass does one pass of the issuer. Callers trust the bundle at once.
func (w *world) pass(t *testing.T) servingcert.Plan {
	t.Helper()
	plan := w.decide(t)
	w.Trusted = [][]byte{w.Bundle, w.Bundle}
	return plan
}

// decide does one pass and leaves what callers trust alone.
func (w *world) decide(t *testing.T) servingcert.Plan {
	t.Helper()
	w.look(t)
	plan, err := rules().Decide(w.now, w.State)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Signer != nil {
		w.Signer = *plan.Signer
	}
	if plan.Serving != nil {
		w.Serving = *plan.Serving
	}
	w.Bundle, w.next = plan.Bundle, plan.Next
	return plan
}

// look sees since when callers trust the CA.
func (w *world) look(t *testing.T) {
	t.Helper()
	if w.Signer.Cert == nil {
		w.TrustedSince = time.Time{}
		return
	}
	ca := certificate(t, w.Signer.Cert)
	for _, data := range w.Trusted {
		if data == nil || !slices.ContainsFunc(certificates(t, data), ca.Equal) {
			w.TrustedSince = time.Time{}
			return
		}
	}
	if w.TrustedSince.IsZero() {
		w.TrustedSince = w.now
	}
}

func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	return certificates(t, data)[0]
}

func certificates(t *testing.T, data []byte) []*x509.Certificate {
	t.Helper()
	certs, err := pemutil.ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

// accepted verifies a serving certificate as an API server does.
func accepted(t *testing.T, now time.Time, serving, bundle []byte) error {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := certificate(t, serving).Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: "service.namespace.svc"})
	return err
}

func settled(t *testing.T) *world {
	t.Helper()
	w := &world{now: began()}
	w.pass(t)
	return w
}

func TestFirstPass(t *testing.T) {
	t.Parallel()
	w := settled(t)
	if err := accepted(t, w.now, w.Serving.Cert, w.Bundle); err != nil {
		t.Error(err)
	}
	ca := certificate(t, w.Signer.Cert)
	if ca.Subject.CommonName != "cluster-manager-webhook@1893456000" || !ca.MaxPathLenZero {
		t.Errorf("CA %v", ca.Subject)
	}
	if plan := w.pass(t); plan.Signer != nil || plan.Serving != nil || len(plan.Why) != 0 {
		t.Errorf("the second pass: %v", plan.Why)
	}
	if wait := w.next.Sub(w.now); wait < 21*24*time.Hour || wait > 24*24*time.Hour {
		t.Errorf("looks again in %v", wait)
	}
}

// TestYears lets callers and the server learn of everything late, by up to the
// time in which a cluster is expected to, through years of rotation.
func TestYears(t *testing.T) {
	t.Parallel()
	w := settled(t)
	random := rand.New(rand.NewPCG(1, 2))
	served := w.Serving
	cas, issued := map[string]bool{}, 0
	for w.now.Before(began().AddDate(4, 0, 0)) {
		w.now = w.now.Add(min(w.next.Sub(w.now), 12*time.Hour) + time.Duration(random.Int64N(int64(time.Hour))))
		seen := w.Trusted[0] // What an API server had seen before this pass.
		if plan := w.decide(t); plan.Serving != nil {
			issued++
		}
		cas[certificate(t, w.Signer.Cert).SerialNumber.String()] = true
		for _, cert := range []servingcert.KeyPair{served, w.Serving} {
			for _, bundle := range [][]byte{seen, w.Bundle} {
				if err := accepted(t, w.now, cert.Cert, bundle); err != nil {
					t.Fatalf("at %v: %v", w.now, err)
				}
			}
		}
		if n := len(certificates(t, w.Bundle)); n > 2 {
			t.Errorf("%d CAs in the bundle", n)
		}
		// The CRDs follow, or not yet; a server that is cut off does not.
		if random.IntN(3) > 0 {
			w.Trusted = [][]byte{w.Bundle, w.Bundle}
		}
		if random.IntN(100) == 0 || certificate(t, served.Cert).NotAfter.Sub(w.now) < 2*24*time.Hour {
			served = w.Serving
		}
	}
	if len(cas) < 5 || issued < 55 || issued > 90 {
		t.Errorf("%d CAs, %d serving certificates", len(cas), issued)
	}
}

func TestNewCAWaitsForTrust(t *testing.T) {
	t.Parallel()
	w := settled(t)
	old := w.Serving
	w.now, w.Signer = w.now.Add(time.Hour), servingcert.KeyPair{}
	plan := w.decide(t)
	if plan.Signer == nil || plan.Serving != nil || len(certificates(t, w.Bundle)) != 2 {
		t.Fatalf("a CA that was lost: %v", plan.Why)
	}
	w.Trusted[1] = w.Bundle // One of the two has seen it.
	w.now = w.now.Add(time.Hour)
	if plan := w.decide(t); plan.Serving != nil || plan.Next.Sub(w.now) > time.Minute {
		t.Error("a certificate that not everybody trusts")
	}
	w.Trusted[0] = w.Bundle
	if plan := w.decide(t); plan.Serving != nil || plan.Next.Sub(w.now) != rules().Settle {
		t.Error("a certificate by a CA that was not trusted until now")
	}
	w.now = w.now.Add(rules().Settle)
	if plan := w.decide(t); plan.Serving == nil || bytes.Equal(w.Serving.Cert, old.Cert) {
		t.Error("no certificate by the new CA")
	}
	// The old CA goes when nothing that it has signed can be good any more.
	w.Trusted = [][]byte{w.Bundle, w.Bundle}
	w.now = certificate(t, old.Cert).NotAfter
	if w.pass(t); len(certificates(t, w.Bundle)) != 2 {
		t.Error("the old CA went too early")
	}
	w.now = w.now.Add(2 * time.Hour)
	if w.pass(t); len(certificates(t, w.Bundle)) != 1 {
		t.Error("the old CA stays")
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	other := settled(t)
	for name, test := range map[string]struct {
		damage          func(w *world)
		signer, serving bool
	}{
		"nothing":                  {damage: func(*world) {}},
		"no serving certificate":   {damage: func(w *world) { w.Serving = servingcert.KeyPair{} }, serving: true},
		"no serving key":           {damage: func(w *world) { w.Serving.Key = nil }, serving: true},
		"another's serving key":    {damage: func(w *world) { w.Serving.Key = other.Serving.Key }, serving: true},
		"another CA's certificate": {damage: func(w *world) { w.Serving = other.Serving }, serving: true},
		"expired":                  {damage: func(w *world) { w.now = w.now.AddDate(0, 0, 31) }, serving: true},
		"no CA":                    {damage: func(w *world) { w.Signer = servingcert.KeyPair{} }, signer: true},
		"no CA, no certificate":    {damage: func(w *world) { w.Signer, w.Serving = servingcert.KeyPair{}, servingcert.KeyPair{} }, signer: true, serving: true},
		"a CA that is none":        {damage: func(w *world) { w.Signer = w.Serving }, signer: true},
		"another's CA key":         {damage: func(w *world) { w.Signer.Key = other.Signer.Key }, signer: true},
		"everything expired":       {damage: func(w *world) { w.now = w.now.AddDate(2, 0, 0) }, signer: true, serving: true},
		"no bundle":                {damage: func(w *world) { w.Bundle = nil }},
		"a bundle that is none":    {damage: func(w *world) { w.Bundle = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t)
			test.damage(w)
			plan := w.pass(t)
			if (plan.Signer != nil) != test.signer || (plan.Serving != nil) != test.serving {
				t.Errorf("%v", plan.Why)
			}
			if err := accepted(t, w.now, w.Serving.Cert, w.Bundle); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOtherNames(t *testing.T) {
	t.Parallel()
	w := settled(t)
	renamed := rules()
	renamed.DNSNames = []string{"other.namespace.svc"}
	plan, err := renamed.Decide(w.now, w.State)
	if err != nil || plan.Serving == nil || !slices.Equal(certificate(t, plan.Serving.Cert).DNSNames, renamed.DNSNames) {
		t.Errorf("%v, %v", plan.Why, err)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte("x"), []byte("y"))
	f.Fuzz(func(t *testing.T, cert, key, bundle []byte) {
		state := servingcert.State{Signer: servingcert.KeyPair{Cert: cert, Key: key}, Serving: servingcert.KeyPair{Cert: key, Key: cert}, Bundle: bundle, Trusted: [][]byte{bundle}}
		plan, err := rules().Decide(began(), state)
		if err != nil || plan.Signer == nil || plan.Serving == nil {
			t.Fatalf("%v, %v", plan.Why, err)
		}
		if err := accepted(t, began(), plan.Serving.Cert, plan.Bundle); err != nil {
			t.Error(err)
		}
	})
}
