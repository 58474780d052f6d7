package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// authorityCA signs certificates for a test.
type authorityCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) authorityCA {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: clock.RealClock{}.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authorityCA{cert: cert, key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate and its key in PEM.
func (ca authorityCA) issue(t *testing.T, serial int64, uri string) (certPEM, keyPEM []byte) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: clock.RealClock{}.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"authorizer"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{parsed}
		template.IPAddresses, template.DNSNames = nil, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func (ca authorityCA) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

func (ca authorityCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// files writes a serving certificate and returns where.
func (ca authorityCA) files(t *testing.T, serial int64) server.TLS {
	t.Helper()
	dir := t.TempDir()
	files := server.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	cert, key := ca.issue(t, serial, "")
	write(t, files.CertFile, cert)
	write(t, files.KeyFile, key)
	return files
}

// TestTLSFollowsItsFiles: a renewed certificate is served to the next
// connection, and half a renewal is not.
func TestTLSFollowsItsFiles(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	files := ca.files(t, 100)
	clk := clocktesting.NewFakeClock(clock.RealClock{}.Now())
	s := start(t, server.Config{TLS: &files, Clock: clk})
	serial := func(address string) int64 {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}}).
			DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64() //nolint:forcetypeassert,errcheck // a tls.Dialer makes these
	}
	both := func(want int64) {
		t.Helper()
		for _, address := range []string{s.Addresses().GRPC, s.Addresses().HTTP} {
			if got := serial(address); got != want {
				t.Errorf("got certificate %d, want %d", got, want)
			}
		}
	}
	both(100)
	cert, key := ca.issue(t, 101, "")
	write(t, files.CertFile, cert)
	clk.Step(2 * time.Second)
	both(100) // Its key is not there yet.
	write(t, files.KeyFile, key)
	clk.Step(2 * time.Second)
	both(101)
	write(t, files.CertFile, []byte("nonsense"))
	clk.Step(2 * time.Second)
	both(101)

	conn := dial(t, "passthrough:///"+s.Addresses().GRPC, credentials.NewTLS(&tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS12}))
	if _, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), checkRequest(nil)); err != nil {
		t.Error(err)
	}
}

// TestClientsAreProven: with a CA of clients, only those with a name that is
// allowed may ask for decisions; an exchange asks for no certificate, because
// the subject token is the credential.
func TestClientsAreProven(t *testing.T) {
	t.Parallel()
	ca, other := newCA(t), newCA(t)
	files := ca.files(t, 100)
	files.ClientCAFile = filepath.Join(t.TempDir(), "ca.crt")
	write(t, files.ClientCAFile, ca.pem())
	files.ClientSANs = []string{"spiffe://mesh/gateway"}
	s := start(t, server.Config{TLS: &files, Exchange: true})

	certificate := func(ca authorityCA, uri string) []tls.Certificate {
		cert, err := tls.X509KeyPair(ca.issue(t, 7, uri))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{cert}
	}
	for _, tc := range []struct {
		name  string
		certs []tls.Certificate
		want  bool
	}{
		{"no certificate", nil, false},
		{"the gateway", certificate(ca, "spiffe://mesh/gateway"), true},
		{"another client", certificate(ca, "spiffe://mesh/other"), false},
		{"the name from another CA", certificate(other, "spiffe://mesh/gateway"), false},
	} {
		config := &tls.Config{RootCAs: ca.pool(), Certificates: tc.certs, MinVersion: tls.VersionTLS12}
		conn := dial(t, "passthrough:///"+s.Addresses().GRPC, credentials.NewTLS(config))
		_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), checkRequest(map[string]string{"authorization": "Bearer a.b.c"}))
		if (err == nil) != tc.want {
			t.Errorf("%s over gRPC: got %v", tc.name, err)
		}
		if err != nil && status.Code(err) != codes.Unavailable {
			t.Errorf("%s over gRPC: got %v", tc.name, err)
		}
		if tc.name == "the name from another CA" {
			continue // The handshake itself fails.
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		for path, want := range map[string]bool{"/authz/x": tc.want, "/token": true} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Addresses().HTTP+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer a.b.c")
			response, err := client.Do(request)
			if err != nil {
				t.Fatalf("%s over HTTP: %v", tc.name, err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if got := response.StatusCode != http.StatusForbidden; got != want {
				t.Errorf("%s over HTTP, %s: got %d", tc.name, path, response.StatusCode)
			}
		}
	}
}

// TestTLSIsCompleteAtTheStart: what is missing is said, not served without.
func TestTLSIsCompleteAtTheStart(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	whole := ca.files(t, 1)
	empty := filepath.Join(t.TempDir(), "ca.crt")
	write(t, empty, nil)
	for name, files := range map[string]server.TLS{
		"no key":           {CertFile: whole.CertFile},
		"a missing file":   {CertFile: whole.CertFile, KeyFile: "/nonexistent"},
		"another's key":    {CertFile: whole.CertFile, KeyFile: ca.files(t, 2).KeyFile},
		"no CA":            {CertFile: whole.CertFile, KeyFile: whole.KeyFile, ClientCAFile: empty},
		"names without CA": {CertFile: whole.CertFile, KeyFile: whole.KeyFile, ClientSANs: []string{"x"}},
	} {
		_, err := server.New(server.Config{
			Authorizer: allowing(), Endpoints: server.Endpoints{GRPC: "127.0.0.1:0"}, TLS: &files, Clock: clock.RealClock{},
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnixSocket: gRPC in plain text beside the TLS port, in place of a socket
// that a process before left behind, and gone afterwards.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	files := newCA(t).files(t, 1)
	path := filepath.Join(t.TempDir(), "authz.sock")
	left, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:forcetypeassert,errcheck // it is one
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	s, stop := begin(t, server.Config{TLS: &files, Endpoints: server.Endpoints{GRPC: "127.0.0.1:0", Unix: path}})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o660 {
		t.Errorf("got mode %o", got)
	}
	conn := dial(t, "unix:"+path, nil)
	if _, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), checkRequest(nil)); err != nil {
		t.Error(err)
	}
	second, err := server.New(server.Config{Authorizer: allowing(), Endpoints: server.Endpoints{Unix: path}, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(t.Context()); err == nil {
		t.Error("a second process took the socket")
	}
	if s.Addresses().Unix != path {
		t.Errorf("got %+v", s.Addresses())
	}
	stop()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
