package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// mintingHub answers every TokenRequest with the same token.
type mintingHub struct{}

func (mintingHub) RoundTrip(r *http.Request) (*http.Response, error) {
	body := authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"},
		Status: authenticationv1.TokenRequestStatus{
			Token:               issued("https://kubernetes.default.svc"),
			ExpirationTimestamp: metav1.NewTime(clock.RealClock{}.Now().Add(time.Hour)),
		},
	}
	data, err := json.Marshal(body)
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)), Request: r,
	}, err
}

// chain is the real chain behind a server: keys, verification, rules, exchange
// and metrics, with a hub that needs no network.
func chain(tb testing.TB, key *issuer.Key) *authorizer.Authorizer {
	tb.Helper()
	registry := prometheus.NewRegistry()
	store := jwks.New(jwks.Config{})
	if err := store.Configure([]jwks.Cluster{{
		Name: "cluster1", Issuer: "https://kubernetes.default.svc", Source: jwks.Source{Inline: issuer.JWKS(tb, key)},
	}}, nil); err != nil {
		tb.Fatal(err)
	}
	minter, err := mint.New(mint.Config{Hub: &rest.Config{Host: "http://hub", Transport: mintingHub{}}, Metrics: registry})
	if err != nil {
		tb.Fatal(err)
	}
	spec := policy.Spec{Cluster: "cluster1", Allow: []v1alpha1.Rule{{
		Namespaces: []string{"app"}, MapTo: v1alpha1.Mapping{Namespace: "team", Name: "{namespace}.{name}"},
	}}}
	rules, findings := policy.Compile(spec)
	if rules == nil {
		tb.Fatal(findings)
	}
	a, err := authorizer.New(authorizer.Config{Minter: minter, Metrics: registry})
	if err != nil {
		tb.Fatal(err)
	}
	demands := &subject.Rules{Audiences: []string{"https://hub.example.com"}, MaxAge: time.Hour, Skew: time.Minute}
	a.Swap(authorizer.Snapshot{
		Verifier: subject.NewVerifier(store, func(string) *subject.Rules { return demands }, clock.RealClock{}),
		Clusters: map[string]*authorizer.Cluster{"cluster1": {Rules: rules, Generation: 1}},
	})
	return a
}

// warm is a server and the bytes of a request of a usual size.
func warm(tb testing.TB) (s *server.Server, request []byte) {
	tb.Helper()
	key := issuer.NewKey(tb, "RS256")
	token := key.Token(tb, issuer.BoundClaims("https://kubernetes.default.svc", "app", "reader", clock.RealClock{}.Now().Add(-time.Second)))
	s, err := server.New(server.Config{
		Authorizer: chain(tb, key), Endpoints: server.Endpoints{GRPC: "127.0.0.1:0"}, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	request, err = proto.Marshal(checkRequest(map[string]string{
		":authority": "hub.example.com", ":method": "GET", ":path": "/api/v1/namespaces/team/secrets/db?timeout=10s", ":scheme": "https",
		"accept": "application/json, */*", "accept-encoding": "gzip", "authorization": "Bearer " + token, "kubernetes-api-version": "v1",
		"user-agent": "external-secrets/v0.9 (linux/amd64)", "x-envoy-internal": "true", "x-forwarded-for": "10.0.0.7",
		"x-forwarded-proto": "https", "x-request-id": "9a2c6f0e-5e06-4f3e-9a1b-62b9f6a4d0a1",
	}))
	if err != nil {
		tb.Fatal(err)
	}
	return s, request
}

// TestWarmCheck: the chain of the benchmark allows.
func TestWarmCheck(t *testing.T) {
	t.Parallel()
	s, request := warm(t)
	data, err := s.CheckWire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var response authv3.CheckResponse
	if err := proto.Unmarshal(data, &response); err != nil || response.GetOkResponse() == nil {
		t.Fatalf("got %v, %v", &response, err)
	}
}

// BenchmarkWarmCheck is what a warm request costs apart from the transport, from the
// bytes of the request to those of the answer.
func BenchmarkWarmCheck(b *testing.B) {
	s, request := warm(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CheckWire(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
