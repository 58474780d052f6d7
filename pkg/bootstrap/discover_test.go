package bootstrap_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
)

// authority is a CA made for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a, err := makeAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func makeAuthority(name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert: cert, key: key, pem: pemutil.EncodeCertificate(der)}, err
}

func (a authority) hash() bootstrap.CAHash { return bootstrap.HashOf(a.cert) }

// chain is serving with the authority in what the server shows.
func (a authority) chain(t *testing.T, host string) tls.Certificate {
	t.Helper()
	cert := a.serving(t, host)
	cert.Certificate = append(cert.Certificate, a.cert.Raw)
	return cert
}

// serving issues a certificate for an address.
func (a authority) serving(t *testing.T, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hub"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// hub is a TLS server that writes down what it was told.
type hub struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
}

// newHub starts a server that publishes info as cluster-info; nil is a server
// that wants a login first.
func newHub(t *testing.T, cert tls.Certificate, info []byte) *hub {
	t.Helper()
	h := &hub{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r)
		h.mu.Unlock()
		if info == nil || !strings.HasSuffix(r.URL.Path, "/configmaps/cluster-info") {
			http.Error(w, "login first", http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.ConfigMap{Data: map[string]string{"kubeconfig": string(info)}})
	}))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// sentCredentials reports whether anybody showed a credential to the server.
func (h *hub) sentCredentials() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.requests {
		if r.Header.Get("Authorization") != "" || len(r.TLS.PeerCertificates) > 0 || r.Header.Get("Cookie") != "" {
			return true
		}
	}
	return false
}

func clusterInfo(t *testing.T, ca []byte) []byte {
	t.Helper()
	info, err := bootstrap.ClusterInfo{Server: "https://elsewhere.example", CA: ca}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func kindOf(err error) bootstrap.Kind {
	if e, ok := errors.AsType[*bootstrap.Error](err); ok {
		return e.Kind
	}
	return ""
}

func TestDiscoverTrustsOnlyWhatIsPinned(t *testing.T) {
	t.Parallel()
	ours, evil := newAuthority(t, "ours"), newAuthority(t, "evil")
	const host = "127.0.0.1"
	for _, tc := range []struct {
		name     string
		cert     tls.Certificate
		info     []byte
		endpoint bootstrap.Endpoint
		want     bootstrap.Kind
		trust    bootstrap.Trust
		ca       []byte
	}{
		{
			name: "a CA file", cert: ours.serving(t, host),
			endpoint: bootstrap.Endpoint{CA: ours.pem}, trust: bootstrap.TrustCAFile, ca: ours.pem,
		},
		{
			name: "a CA file of somebody else", cert: ours.serving(t, host),
			endpoint: bootstrap.Endpoint{CA: evil.pem}, want: bootstrap.Untrusted,
		},
		{
			name: "a CA file without a certificate", cert: ours.serving(t, host),
			endpoint: bootstrap.Endpoint{CA: []byte("no PEM")}, want: bootstrap.BadCA,
		},
		{
			name: "a pin and cluster-info", cert: ours.serving(t, host), info: clusterInfo(t, ours.pem),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, trust: bootstrap.TrustPin, ca: ours.pem,
		},
		{
			name: "a pin and a cluster-info with more than was pinned", cert: ours.serving(t, host),
			info:     clusterInfo(t, append(bytes.Clone(evil.pem), ours.pem...)),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, trust: bootstrap.TrustPin, ca: ours.pem,
		},
		{
			name: "a pin and the chain", cert: ours.chain(t, host),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, trust: bootstrap.TrustPin, ca: ours.pem,
		},
		{
			name: "a pin and a server that hides its authority", cert: ours.serving(t, host),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, want: bootstrap.Mismatch,
		},
		{
			name: "a pin and another hub", cert: evil.chain(t, host), info: clusterInfo(t, evil.pem),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, want: bootstrap.Mismatch,
		},
		{
			name: "a pin and somebody in between who repeats the right cluster-info",
			cert: evil.chain(t, host), info: clusterInfo(t, ours.pem),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, want: bootstrap.Untrusted,
		},
		{
			name: "the system's roots do not know it", cert: ours.chain(t, host), info: clusterInfo(t, ours.pem),
			want: bootstrap.Untrusted,
		},
		{
			name: "the system's roots know it", cert: public.serving(t, host), trust: bootstrap.TrustSystem,
		},
		{
			name: "the system's roots know it, and the proxy has an authority", cert: public.serving(t, host),
			endpoint: bootstrap.Endpoint{ProxyCA: evil.pem}, trust: bootstrap.TrustSystem,
		},
		{
			name: "a CA file, and another hub that the system's roots know", cert: public.serving(t, host),
			endpoint: bootstrap.Endpoint{CA: ours.pem}, want: bootstrap.Untrusted,
		},
		{
			name: "a certificate for another address", cert: ours.serving(t, "hub.example"),
			endpoint: bootstrap.Endpoint{CA: ours.pem}, want: bootstrap.WrongHost,
		},
		{
			name: "a pinned certificate for another address", cert: ours.chain(t, "hub.example"),
			endpoint: bootstrap.Endpoint{Pins: []bootstrap.CAHash{ours.hash()}}, want: bootstrap.WrongHost,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := newHub(t, tc.cert, tc.info)
			tc.endpoint.Server = server.URL + "/"
			got, err := bootstrap.Discover(t.Context(), tc.endpoint)
			if kindOf(err) != tc.want {
				t.Fatalf("error %v, want kind %q", err, tc.want)
			}
			if server.sentCredentials() {
				t.Error("a credential was sent")
			}
			if tc.want != "" {
				return
			}
			if got.Date.IsZero() {
				t.Error("the hub's time is not known")
			}
			if got.Trust != tc.trust || got.Cluster.Server != server.URL {
				t.Errorf("got %s by %s", got.Cluster.Server, got.Trust)
			}
			if !bytes.Equal(bytes.TrimSpace(got.Cluster.CertificateAuthorityData), bytes.TrimSpace(tc.ca)) {
				t.Errorf("authority:\n%s", got.Cluster.CertificateAuthorityData)
			}
		})
	}
}

func TestDiscoverFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	other := newHub(t, ours.chain(t, "127.0.0.1"), clusterInfo(t, ours.pem))
	from := httptest.NewUnstartedServer(http.RedirectHandler(other.URL, http.StatusFound))
	from.TLS = &tls.Config{Certificates: []tls.Certificate{ours.serving(t, "127.0.0.1")}, MinVersion: tls.VersionTLS12}
	from.StartTLS()
	t.Cleanup(from.Close)

	_, err := bootstrap.Discover(t.Context(), bootstrap.Endpoint{Server: from.URL, Pins: []bootstrap.CAHash{ours.hash()}})
	if kindOf(err) != bootstrap.Mismatch || len(other.requests) > 0 {
		t.Errorf("error %v, %d requests at the other server", err, len(other.requests))
	}
}

func TestDiscoverGoesThroughTheProxy(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	server := newHub(t, ours.chain(t, "hub.example"), nil)
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "hub.example:6443" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		proxied++
		tunnel(t, w, server.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)

	got, err := bootstrap.Discover(t.Context(), bootstrap.Endpoint{
		Server: "https://hub.example:6443", Pins: []bootstrap.CAHash{ours.hash()}, ProxyURL: proxy.URL,
	})
	if err != nil || proxied != 2 || got.Cluster.ProxyURL != proxy.URL {
		t.Errorf("%d connections, proxy %q, error %v", proxied, got.Cluster.ProxyURL, err)
	}
}

func tunnel(t *testing.T, w http.ResponseWriter, target string) {
	t.Helper()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	near, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", target)
	if err != nil {
		_ = near.Close()
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
	go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
}

func TestDiscoverKeepsProxyPasswordsFromUnverifiedProxies(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	proxy := newHub(t, ours.chain(t, "127.0.0.1"), nil)
	_, err := bootstrap.Discover(t.Context(), bootstrap.Endpoint{
		Server: "https://hub.example:6443", Pins: []bootstrap.CAHash{ours.hash()},
		ProxyURL: strings.Replace(proxy.URL, "https://", "https://me:secret@", 1),
	})
	if kindOf(err) != bootstrap.Untrusted || len(proxy.requests) > 0 || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v, %d requests", err, len(proxy.requests))
	}
}

func TestDiscoverReportsAnUnreachableHub(t *testing.T) {
	t.Parallel()
	server := newHub(t, newAuthority(t, "ours").chain(t, "127.0.0.1"), nil)
	server.Close()
	_, err := bootstrap.Discover(t.Context(), bootstrap.Endpoint{Server: server.URL})
	if kindOf(err) != bootstrap.Unreachable {
		t.Errorf("error %v", err)
	}
}
