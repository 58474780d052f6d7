package extauthzproxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

// authorizer answers what it is told to.
type authorizer struct {
	authv3.UnimplementedAuthorizationServer

	answer func(context.Context) (*authv3.CheckResponse, error)
}

func (a *authorizer) Check(ctx context.Context, _ *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return a.answer(ctx)
}

// ground is a proxy between an authorizer and an upstream.
type ground struct {
	url string

	mu       sync.Mutex
	upstream *http.Request
	seen     []extauthzproxy.Observation
}

func start(t *testing.T, answer func(context.Context) (*authv3.CheckResponse, error), change func(*extauthzproxy.Config)) *ground {
	t.Helper()
	g := &ground{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, &authorizer{answer: answer})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })

	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.upstream = r
		_, _ = io.WriteString(w, "upstream")
	}))
	t.Cleanup(upstream.Close)
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := extauthzproxy.Config{
		Authorizer: "passthrough:///" + listener.Addr().String(), Upstream: to,
		// Only the test of the deadline means it.
		Timeout: time.Minute,
		Observe: func(o extauthzproxy.Observation) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.seen = append(g.seen, o)
		},
	}
	if change != nil {
		change(&config)
	}
	g.url = extauthzproxy.Serve(t, config).URL
	return g
}

// answered is what a client got.
type answered struct {
	status int
	header http.Header
	body   string
}

// get sends headers and returns the answer.
func (g *ground) get(t *testing.T, headers http.Header) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/api/v1/pods?limit=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = headers
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{status: resp.StatusCode, header: resp.Header, body: string(body)}
}

func ok(response *authv3.OkHttpResponse) func(context.Context) (*authv3.CheckResponse, error) {
	metadata, _ := structpb.NewStruct(map[string]any{"cluster": "cluster1"})
	return func(context.Context) (*authv3.CheckResponse, error) {
		return &authv3.CheckResponse{
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: response}, DynamicMetadata: metadata,
		}, nil
	}
}

func option(key, value string, action corev3.HeaderValueOption_HeaderAppendAction) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: key, Value: value}, AppendAction: action}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	old := option("x-old", "2", 0)
	old.Append = wrapperspb.Bool(false) //nolint:staticcheck // Envoy still reads it.
	g := start(t, ok(&authv3.OkHttpResponse{
		Headers: []*corev3.HeaderValueOption{
			option("authorization", "Bearer issued", corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD),
			option("x-appended", "2", corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD),
			option("x-kept", "2", corev3.HeaderValueOption_ADD_IF_ABSENT),
			option("x-absent", "2", corev3.HeaderValueOption_OVERWRITE_IF_EXISTS),
			option("x-removed", "2", corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD),
			old,
		},
		HeadersToRemove:      []string{"impersonate-user", "x-removed", "host", ":path"},
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{option("x-answered", "yes", corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)},
	}), func(c *extauthzproxy.Config) { c.RemoveHeaders = []string{"x-route"} })
	got := g.get(t, http.Header{
		"Authorization": {"Bearer subject"}, "X-Appended": {"1"}, "X-Kept": {"1"}, "X-Old": {"1"},
		"Impersonate-User": {"root"}, "X-Route": {"1"},
	})
	if got.status != http.StatusOK || got.body != "upstream" || got.header.Get("X-Answered") != "yes" {
		t.Errorf("%+v", got)
	}
	reached := map[string][]string{}
	for _, key := range []string{
		"Authorization", "X-Appended", "X-Kept", "X-Old", "X-Absent", "X-Removed", "Impersonate-User", "X-Route",
	} {
		reached[key] = g.upstream.Header.Values(key)
	}
	want := map[string][]string{
		"Authorization": {"Bearer issued"}, "X-Appended": {"1", "2"}, "X-Kept": {"1"}, "X-Old": {"2"},
		"X-Absent": nil, "X-Removed": nil, "Impersonate-User": nil, "X-Route": nil,
	}
	if diff := cmp.Diff(want, reached); diff != "" {
		t.Errorf("headers upstream (-want +got):\n%s", diff)
	}
	if len(g.seen) != 1 || g.seen[0].Outcome != extauthzproxy.Allowed || g.seen[0].Metadata["cluster"] != "cluster1" {
		t.Errorf("observed %+v", g.seen)
	}
}

// TestForgottenAction is Envoy's trap: without an action a second credential
// goes upstream.
func TestForgottenAction(t *testing.T) {
	t.Parallel()
	g := start(t, ok(&authv3.OkHttpResponse{Headers: []*corev3.HeaderValueOption{option("authorization", "Bearer issued", 0)}}), nil)
	g.get(t, http.Header{"Authorization": {"Bearer subject"}})
	if diff := cmp.Diff([]string{"Bearer subject", "Bearer issued"}, g.upstream.Header.Values("Authorization")); diff != "" {
		t.Error(diff)
	}
}

func TestDenials(t *testing.T) {
	t.Parallel()
	failed := grpcstatus.Error(codes.Unavailable, "no keys yet")
	type answer func(context.Context) (*authv3.CheckResponse, error)
	for name, test := range map[string]struct {
		answer  answer
		change  func(*extauthzproxy.Config)
		status  int
		body    string
		header  string
		outcome extauthzproxy.Outcome
	}{
		"denied": {
			answer: func(context.Context) (*authv3.CheckResponse, error) {
				return &authv3.CheckResponse{
					Status: &status.Status{Code: int32(codes.Unauthenticated)},
					HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
						Status:  &typev3.HttpStatus{Code: typev3.StatusCode_Unauthorized},
						Headers: []*corev3.HeaderValueOption{option("www-authenticate", "Bearer", 0)}, Body: "no",
					}},
				}, nil
			},
			status: http.StatusUnauthorized, body: "no", header: "Bearer", outcome: extauthzproxy.Denied,
		},
		"denied without a status": {
			answer: func(context.Context) (*authv3.CheckResponse, error) {
				return &authv3.CheckResponse{Status: &status.Status{Code: int32(codes.PermissionDenied)}}, nil
			},
			status: http.StatusForbidden, outcome: extauthzproxy.Denied,
		},
		"an error": {
			answer: func(context.Context) (*authv3.CheckResponse, error) { return nil, failed },
			status: http.StatusForbidden, outcome: extauthzproxy.Failed,
		},
		"an error with a configured status": {
			answer: func(context.Context) (*authv3.CheckResponse, error) { return nil, failed },
			change: func(c *extauthzproxy.Config) { c.StatusOnError = http.StatusServiceUnavailable },
			status: http.StatusServiceUnavailable, outcome: extauthzproxy.Failed,
		},
		"an error that is let through": {
			answer: func(context.Context) (*authv3.CheckResponse, error) { return nil, failed },
			change: func(c *extauthzproxy.Config) { c.FailureModeAllow = true },
			status: http.StatusOK, body: "upstream", outcome: extauthzproxy.Failed,
		},
		"an error response": {
			answer: func(context.Context) (*authv3.CheckResponse, error) {
				return &authv3.CheckResponse{
					Status: &status.Status{Code: int32(codes.Unavailable)},
					HttpResponse: &authv3.CheckResponse_ErrorResponse{ErrorResponse: &authv3.DeniedHttpResponse{
						Status: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable}, Body: "later",
					}},
				}, nil
			},
			status: http.StatusServiceUnavailable, body: "later", outcome: extauthzproxy.Failed,
		},
		"too slow": {
			answer: func(ctx context.Context) (*authv3.CheckResponse, error) { <-ctx.Done(); return nil, ctx.Err() },
			change: func(c *extauthzproxy.Config) { c.Timeout = 0 },
			status: http.StatusForbidden, outcome: extauthzproxy.Failed,
		},
		"no authorizer": {
			answer: func(context.Context) (*authv3.CheckResponse, error) { return nil, failed },
			change: func(c *extauthzproxy.Config) { c.Authorizer = "passthrough:///127.0.0.1:1" },
			status: http.StatusForbidden, outcome: extauthzproxy.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, test.answer, test.change)
			got := g.get(t, http.Header{"Authorization": {"Bearer subject"}})
			if got.status != test.status || got.body != test.body || got.header.Get("Www-Authenticate") != test.header {
				t.Errorf("%+v", got)
			}
			if len(g.seen) != 1 || g.seen[0].Outcome != test.outcome {
				t.Errorf("observed %+v", g.seen)
			}
			if let := g.upstream != nil; let != (test.status == http.StatusOK) {
				t.Errorf("reached the upstream: %v", let)
			}
		})
	}
}
