package extauthzproxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

var update = flag.Bool("update", false, "write the golden files")

// clientRequest is what a client sends to the proxy's port.
func clientRequest(method, path string, headers http.Header) *http.Request {
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8443}
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, local) //nolint:forbidigo // it is data
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	headers.Set("X-Request-Id", "7b1a4f3c-0f4e-4d63-9d53-f4f3b2b1a001")
	r.Header = headers
	r.Host, r.RemoteAddr, r.RequestURI = "hub.example.com", "192.0.2.7:40112", path
	return r
}

func bearer(values ...string) http.Header {
	return http.Header{"Authorization": values, "User-Agent": {"kubectl/v1.36.3"}, "Accept": {"application/json"}, "Connection": {"keep-alive"}}
}

func secured(r *http.Request, cert *x509.Certificate) *http.Request {
	r.TLS = &tls.ConnectionState{}
	if cert != nil {
		r.TLS.PeerCertificates = []*x509.Certificate{cert}
	}
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	return r
}

func spiffe() *x509.Certificate {
	return &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster1", Path: "/ns/app-prod/sa/web"}}}
}

// TestGolden compares what the proxy sends with the files that the tests of the
// authorizer's server use.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request *http.Request
		change  func(*extauthzproxy.Config)
	}{
		"get":             {request: clientRequest(http.MethodGet, "/api/v1/namespaces/app-prod/pods?limit=500", bearer("Bearer subject"))},
		"no-token":        {request: clientRequest(http.MethodGet, "/version", http.Header{})},
		"two-tokens":      {request: clientRequest(http.MethodGet, "/version", bearer("Bearer subject", "Bearer other"))},
		"two-tokens-raw":  {request: clientRequest(http.MethodGet, "/version", bearer("Bearer subject", "Bearer other")), change: raw},
		"raw":             {request: clientRequest(http.MethodGet, "/version", bearer("Bearer subject")), change: raw},
		"lower-scheme":    {request: clientRequest(http.MethodGet, "/version", bearer("bearer subject"))},
		"basic":           {request: clientRequest(http.MethodGet, "/version", bearer("Basic c3ViamVjdDo="))},
		"http2":           {request: secured(clientRequest(http.MethodPost, "/api/v1/namespaces/app-prod/pods", bearer("Bearer subject")), nil)},
		"mutual-tls":      {request: secured(clientRequest(http.MethodGet, "/version", bearer("Bearer subject")), spiffe()), change: named},
		"mutual-tls-name": {request: secured(clientRequest(http.MethodGet, "/version", bearer("Bearer subject")), &x509.Certificate{Subject: pkix.Name{CommonName: "proxy"}})},
		"impersonate": {request: clientRequest(http.MethodGet, "/version", http.Header{
			"Authorization": {"Bearer subject"}, "Impersonate-User": {"system:admin"}, "Impersonate-Group": {"system:masters", "b"},
		})},
		"extensions": {request: clientRequest(http.MethodGet, "/version", bearer("Bearer subject")), change: func(c *extauthzproxy.Config) {
			c.ContextExtensions = map[string]string{"virtual_host": "hub"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := encode(t, fixed(sent(t, test.request, test.change)))
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run the test with -update if this is meant (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoldenIsReadable(t *testing.T) {
	t.Parallel()
	if got := extauthzproxy.Golden(t)["get"].GetAttributes().GetRequest().GetHttp().GetHeaders()["authorization"]; got != "Bearer subject" {
		t.Errorf("authorization is %q", got)
	}
}

func raw(c *extauthzproxy.Config) { c.EncodeRawHeaders = true }

func named(c *extauthzproxy.Config) { c.Principal = "spiffe://hub/ns/gateway/sa/envoy" }

// sent is the CheckRequest about a request, which nobody answers.
func sent(t *testing.T, r *http.Request, change func(*extauthzproxy.Config)) *authv3.CheckRequest {
	t.Helper()
	var request *authv3.CheckRequest
	config := extauthzproxy.Config{
		Authorizer: "passthrough:///127.0.0.1:1", Upstream: &url.URL{Scheme: "http", Host: "127.0.0.1:1"},
		Observe: func(o extauthzproxy.Observation) { request = o.Request },
	}
	if change != nil {
		change(&config)
	}
	proxy, err := extauthzproxy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proxy.Close() }()
	proxy.ServeHTTP(httptest.NewRecorder(), r)
	return request
}

// fixed replaces what is another each time.
func fixed(request *authv3.CheckRequest) *authv3.CheckRequest {
	request.Attributes.Request.Time = timestamppb.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	request.Attributes.Request.Http.Id = "9876543210"
	return request
}

func encode(t *testing.T, request *authv3.CheckRequest) []byte {
	t.Helper()
	data, err := protojson.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}
