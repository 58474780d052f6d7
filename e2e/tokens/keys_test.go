package tokens_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

// policyFor is a configuration with one rule for a cluster: namespace app
// becomes one ServiceAccount of the hub.
func policyFor(name, keys, to string) string {
	return fmt.Sprintf(`
- name: %s
  issuer: %s
  audiences: [%s]
  keys: %s
  allow:
  - namespaces: [app]
    mapTo: {namespace: %s, name: reader}
`, name, sharedIssuer, audience, keys, to)
}

// signer is a key of a cluster, and its files.
type signer struct {
	private, public []byte
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return signer{
		private: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		public:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
}

// TestRotation changes a cluster's signing key as Kubernetes has it done, in
// five steps, while a workload asks all the time. No request may fail before
// the last step, in which the old key goes (tokensmith's design, Security 2 and 3, "Handles
// multiple keys per cluster").
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publics, private := filepath.Join(dir, "sa.pub"), filepath.Join(dir, "sa.key")
	write := func(path string, data ...[]byte) {
		if err := os.WriteFile(path, []byte(strings.Join(texts(data), "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	older, newer := newSigner(t), newSigner(t)
	write(publics, older.public)
	write(private, older.private)
	plane := controlplane.Start(t, controlplane.WithAPIServerArgs("--service-account-key-file="+publics, "--service-account-signing-key-file="+private))
	c := newClusterOn(t, plane.ControlPlane)
	target(t, "rotation", "reader")
	kubeconfig := writeFile(t, "cluster.kubeconfig", c.Kubeconfig(t, "cluster"))
	a := newAuthorizer(t, "--clusters-config="+writeFile(t, "clusters.yaml", []byte("clusters:"+
		policyFor("rotating", "{discovery: {}, auth: {kubeconfigFile: "+kubeconfig+"}}", "rotation")))).ready(t)
	f := newFront(t, []*authorizer{a}, nil)
	user := serviceAccount("rotation", "reader")

	var current atomic.Pointer[string]
	use := func(token string) { current.Store(&token) }
	first := c.mint(t, "app", "web", audience)
	use(first)
	f.becomes(t, first, user)
	stop := f.load(t, 2, func() string { return *current.Load() }, user)
	restart := func() { plane.StopAPIServer(t); plane.StartAPIServer(t) }

	// 1. The new key is published beside the old one.
	write(publics, older.public, newer.public)
	restart()
	use(c.mint(t, "app", "web", audience))
	// 2. The authorizer need not have learned of it before
	// 3. the API server signs with it: a token with an unknown key has the keys
	// read again.
	write(private, newer.private)
	restart()
	second := c.mint(t, "app", "web", audience)
	if header(first) == header(second) {
		t.Fatal("the API server signs with the old key")
	}
	use(second)
	f.expect(t, second, user)
	// 4. Tokens of the old key are good until they end.
	f.expect(t, first, user)
	// 5. The old key goes, and with it what it signed, once the authorizer reads
	// the keys: a new process has nothing else.
	write(publics, newer.public)
	restart()
	stop()
	a.stop(t)
	a.start(t)
	a.ready(t)
	f.becomes(t, second, user)
	f.refused(t, first, http.StatusUnauthorized, "unknown_key")
}

func texts(data [][]byte) []string {
	out := make([]string, len(data))
	for i := range data {
		out[i] = string(data[i])
	}
	return out
}

// header is the first part of a token, which names its key.
func header(token string) string {
	first, _, _ := strings.Cut(token, ".")
	return first
}

// provider serves key sets over TLS.
type provider struct {
	*httptest.Server

	keys  atomic.Pointer[[]byte]
	delay atomic.Int64
	asked atomic.Int64
	down  atomic.Bool
}

func newProvider(t *testing.T, keys []byte) *provider {
	t.Helper()
	p := &provider{}
	p.keys.Store(&keys)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if !pause.For(r.Context(), clock.RealClock{}, time.Duration(p.delay.Load())) {
			return
		}
		if p.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(*p.keys.Load())
	}))
	t.Cleanup(p.Close)
	return p
}

// source is the provider as a source of keys.
func (p *provider) source(t *testing.T) string {
	t.Helper()
	ca := writeFile(t, "ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
	return fmt.Sprintf("{jwksURI: '%s/keys', caFile: %s}", p.URL, ca)
}

// TestSlowProvider has Envoy's own deadline of 200 ms, and keys that take
// 400 ms. The request that gives up does not take the keys with it.
func TestSlowProvider(t *testing.T) {
	t.Parallel()
	c, stranger := newCluster(t), newSigner(t)
	target(t, "slow", "reader")
	p := newProvider(t, jwkSet(t, stranger))
	a := newAuthorizer(t, "--clusters-config="+writeFile(t, "clusters.yaml", []byte("clusters:"+policyFor("slow", p.source(t), "slow")))).ready(t)
	f := newFront(t, []*authorizer{a}, func(c *extauthzproxy.Config) { c.Timeout = 0 })
	keys := c.KeySet(t)
	p.keys.Store(&keys)
	p.delay.Store(int64(400 * time.Millisecond))
	asked := p.asked.Load()
	token := c.mint(t, "app", "web", audience)
	if got := f.whoAmI(t.Context(), token); got.status != http.StatusServiceUnavailable {
		t.Errorf("the first request: %v", got)
	}
	f.becomes(t, token, serviceAccount("slow", "reader"))
	if got := p.asked.Load() - asked; got != 1 {
		t.Errorf("the provider was asked %d times", got)
	}
}

// TestProviderDown starts without the provider, which comes, and goes.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	target(t, "down", "reader")
	p := newProvider(t, c.KeySet(t))
	p.down.Store(true)
	a := newAuthorizer(t, "--clusters-config="+writeFile(t, "clusters.yaml", []byte("clusters:"+policyFor("down", p.source(t), "down")))).ready(t)
	f := newFront(t, []*authorizer{a}, nil)
	token := c.mint(t, "app", "web", audience)
	got := f.whoAmI(t.Context(), token)
	if got.status != http.StatusServiceUnavailable {
		t.Errorf("without keys: %v (reason %q)", got, f.reason())
	}
	p.down.Store(false)
	f.becomes(t, token, serviceAccount("down", "reader"))
	p.down.Store(true)
	f.expect(t, token, serviceAccount("down", "reader"))
	f.expect(t, c.mint(t, "app", "other", audience), serviceAccount("down", "reader"))
}
