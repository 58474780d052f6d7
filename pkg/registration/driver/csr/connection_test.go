package csr_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

func opener() driver.Agent {
	return csr.NewAgent(csr.AgentConfig{Identity: driver.Identity{Cluster: "c1", Agent: "a1"}, Clock: clock.RealClock{}})
}

func stored(cert, key []byte) driver.Data {
	return driver.Data{names.KeyTLSCert: cert, names.KeyTLSKey: key}
}

func selfSigned(t *testing.T, name string) (cert, key []byte) {
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

func TestReload(t *testing.T) {
	t.Parallel()
	hub := server(t)
	conn, err := opener().Open(hub, "", stored(selfSigned(t, "first")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
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
	if err := conn.Reload(stored(selfSigned(t, "second"))); err != nil {
		t.Fatal(err)
	}
	if got := get(t, c, hub.Cluster.Server); got != "second" {
		t.Errorf("after the reload connected as %q", got)
	}
	if _, err := io.ReadAll(watch.Body); err == nil {
		t.Error("a watch goes on with the old certificate")
	}
}

func TestReloadRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	cert, _ := selfSigned(t, "a")
	_, key := selfSigned(t, "b")
	if _, err := opener().Open(server(t), "", stored(cert, key)); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("got %v", err)
	}
}
