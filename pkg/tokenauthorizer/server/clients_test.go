package server_test

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/credentials"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestClientsOfACAWithoutNames: with a CA of clients and no names, any
// certificate of the CA will do, but none will not.
func TestClientsOfACAWithoutNames(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	files := ca.files(t, 100)
	files.ClientCAFile = filepath.Join(t.TempDir(), "ca.crt")
	write(t, files.ClientCAFile, ca.pem())
	s := start(t, server.Config{TLS: &files})
	pair, err := tls.X509KeyPair(ca.issue(t, 7, "spiffe://mesh/any"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		certs []tls.Certificate
		taken bool
	}{
		"any certificate of the CA": {[]tls.Certificate{pair}, true},
		"no certificate":            {nil, false},
	} {
		config := &tls.Config{RootCAs: ca.pool(), Certificates: tc.certs, MinVersion: tls.VersionTLS12}
		conn := dial(t, "passthrough:///"+s.Addresses().GRPC, credentials.NewTLS(config))
		_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), checkRequest(nil))
		if (err == nil) != tc.taken {
			t.Errorf("%s over gRPC: got %v", name, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Addresses().HTTP+"/authz/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer a.b.c")
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s over HTTP: %v", name, err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if (response.StatusCode != http.StatusForbidden) != tc.taken {
			t.Errorf("%s over HTTP: got %d", name, response.StatusCode)
		}
	}
}
