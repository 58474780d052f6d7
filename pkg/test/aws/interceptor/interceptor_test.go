package interceptor_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws/interceptor"
)

func TestInterceptor(t *testing.T) {
	t.Parallel()
	proxy := interceptor.Start(t,
		func(host string) bool { return strings.HasSuffix(host, ".example.com") },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.URL.Path) }))
	client := newClient(t, proxy)
	for _, host := range []string{"a.example.com", "b.example.com", "a.example.com"} {
		if got, err := get(t, client, "https://"+host+"/x"); err != nil || got != host+"/x" {
			t.Errorf("%s: got %q, %v", host, got, err)
		}
	}
	for _, address := range []string{"https://example.com/", "https://a.example.com:8443/", "http://a.example.com/"} {
		if got, err := get(t, client, address); err == nil && !strings.Contains(got, "only hosts of AWS") {
			t.Errorf("%s: got %q, want a refusal", address, got)
		}
	}
	if got := fmt.Sprint(proxy.Refused()); got != "[example.com:443 a.example.com:8443 a.example.com]" {
		t.Errorf("refused %s", got)
	}
}

// TestHostBehindTheTunnel shows that a tunnel to one host cannot reach another.
func TestHostBehindTheTunnel(t *testing.T) {
	t.Parallel()
	proxy := interceptor.Start(t, func(host string) bool { return host == "a.example.com" }, http.NotFoundHandler())
	client := newClient(t, proxy)
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	transport.TLSClientConfig.ServerName = "b.example.com"
	if got, err := get(t, client, "https://a.example.com/"); err == nil {
		t.Errorf("another host behind the tunnel answered %q", got)
	}
}

func newClient(t *testing.T, proxy *interceptor.Proxy) *http.Client {
	t.Helper()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(proxy.CA) {
		t.Fatal("no CA")
	}
	transport := &http.Transport{
		Proxy: http.ProxyURL(address), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, client *http.Client, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
