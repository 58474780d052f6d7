package hubclient_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
)

// TestVerifiesTheHub has a server behind another certificate authority than the
// kubeconfig's.
func TestVerifiesTheHub(t *testing.T) {
	t.Parallel()
	mine, other := serve(t), serve(t)
	for name, tc := range map[string]struct {
		authority *httptest.Server
		verified  bool
	}{
		"its own authority":     {authority: mine, verified: true},
		"another's certificate": {authority: other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{
				Server: mine.URL, CertificateAuthorityData: pemutil.EncodeCertificate(tc.authority.Certificate().Raw),
			}}
			conn, err := hubclient.New(hub, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			c, err := rest.HTTPClientFor(conn.Config())
			if err != nil {
				t.Fatal(err)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, mine.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err == nil) != tc.verified {
				t.Errorf("got %v", err)
			}
		})
	}
}

// serve starts a server with a certificate authority of its own.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	cert, key := certificate(t)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := clock.RealClock{}.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return pemutil.EncodeCertificate(der), keyPEM
}

func TestRefusesUnverifiedHubs(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]clientcmdapi.Cluster{
		"no TLS":          {Server: "http://hub.example.com"},
		"no verification": {Server: "https://hub.example.com", InsecureSkipTLSVerify: true},
		"no URL":          {Server: "hub.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := kubeconfig.Hub{ClusterName: "hub", Cluster: cluster, User: clientcmdapi.AuthInfo{Token: "secret"}}
			if _, err := hubclient.Static(hub, "", "test"); !errors.Is(err, kubeconfig.ErrInvalid) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStaticResolvesRelativeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hub := kubeconfig.Hub{
		Cluster: clientcmdapi.Cluster{Server: "https://hub.example.com"},
		User:    clientcmdapi.AuthInfo{TokenFile: "token"},
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := hubclient.Static(hub, dir, "test")
	if err != nil || config.BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("got %+v, %v", config, err)
	}
}

// TestStaticRunsNoProgram: whoever may write the bootstrap Secret must not be
// able to run commands as the agent.
func TestStaticRunsNoProgram(t *testing.T) {
	t.Parallel()
	hub := kubeconfig.Hub{Cluster: clientcmdapi.Cluster{Server: "https://hub.example.com"}}
	hub.User.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	if _, err := hubclient.Static(hub, t.TempDir(), "test"); err == nil || !strings.Contains(err.Error(), `it runs the program "sh"`) {
		t.Errorf("got %v", err)
	}
	hub.User = clientcmdapi.AuthInfo{TokenFile: "/etc/passwd"}
	if _, err := hubclient.Static(hub, t.TempDir(), "test"); err == nil || !strings.Contains(err.Error(), `"/etc/passwd"`) {
		t.Errorf("got %v", err)
	}
}
