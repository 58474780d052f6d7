package connection_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/connection"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

func certificate(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, keyPEM, err := pemutil.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.RealClock{}.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return pemutil.EncodeCertificate(der), keyPEM
}

// server says who it talks to, and on /watch goes on until the connection ends.
func server(t *testing.T) kubeconfig.Hub {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return kubeconfig.Hub{ClusterName: "hub", Cluster: clientcmdapi.Cluster{
		Server: s.URL, CertificateAuthorityData: pemutil.EncodeCertificate(s.Certificate().Raw),
	}}
}

// get reads url. A request that meets a connection in the moment in which it is
// closed fails, and is made again.
func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	var body []byte
	await.Success(t, time.Minute, "the answer of "+url, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err = io.ReadAll(resp.Body)
		return err
	})
	return string(body)
}

func TestRotate(t *testing.T) {
	t.Parallel()
	hub := server(t)
	conn, err := connection.New(hub, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := conn.Rotate(certificate(t, "first")); err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(conn.Config())
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, c, hub.Cluster.Server); got != "first" {
		t.Errorf("connected as %q", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.Cluster.Server+"/watch", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	if err := conn.Rotate(certificate(t, "second")); err != nil {
		t.Fatal(err)
	}
	if got := get(t, c, hub.Cluster.Server); got != "second" {
		t.Errorf("after the rotation connected as %q", got)
	}
	if _, err := io.ReadAll(watch.Body); err == nil {
		t.Error("a watch goes on with the old certificate")
	}
}

func TestRotateRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	conn, err := connection.New(server(t), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	cert, _ := certificate(t, "a")
	_, key := certificate(t, "b")
	if err := conn.Rotate(cert, key); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("got %v", err)
	}
}

func TestVerifiesTheHub(t *testing.T) {
	t.Parallel()
	hub := server(t)
	other, _ := certificate(t, "other")
	hub.Cluster.CertificateAuthorityData = other
	conn, err := connection.New(hub, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := conn.Rotate(certificate(t, "a")); err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(conn.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.Cluster.Server, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("it talked to a server that it cannot verify")
	}
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
			if _, err := connection.Static(hub, ""); !errors.Is(err, kubeconfig.ErrInvalid) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStaticResolvesFilesBesideTheKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hub := kubeconfig.Hub{
		Cluster: clientcmdapi.Cluster{Server: "https://hub.example.com"},
		User:    clientcmdapi.AuthInfo{TokenFile: "token"},
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := connection.Static(hub, dir)
	if err != nil || config.BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("got %+v, %v", config, err)
	}
}
