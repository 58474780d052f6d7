package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority decides as a test says, and remembers what it was asked.
type authority struct {
	decide func(authorizer.Request) (authorizer.Decision, error)

	mu    sync.Mutex
	asked []authorizer.Request
}

func (a *authority) Authorize(_ context.Context, request authorizer.Request) (authorizer.Decision, error) {
	a.mu.Lock()
	a.asked = append(a.asked, request)
	a.mu.Unlock()
	return a.decide(request)
}

func (a *authority) last() authorizer.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asked) == 0 {
		return authorizer.Request{}
	}
	return a.asked[len(a.asked)-1]
}

// allowed is a decision with everything in it.
func allowed() authorizer.Decision {
	return authorizer.Decision{
		Identity: subject.Identity{
			Cluster: "cluster1",
			Account: subject.Account{Namespace: "app", Name: "reader", UID: "u-1"},
			Token:   subject.Token{ID: "jti-subject"},
			Bound:   subject.Binding{Pod: subject.Object{Name: "reader-0", UID: "u-2"}},
		},
		Grant: policy.Grant{Rule: "cluster1/allow[0]", Target: policy.Target{Namespace: "app", Name: "reader"}},
		Token: mint.Token{Value: "hub.token.value", ID: "jti-issued", Expires: clock.RealClock{}.Now().Add(time.Hour)},
	}
}

func allowing() *authority {
	return &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return allowed(), nil }}
}

func denying(err error) *authority {
	return &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return authorizer.Decision{}, err }}
}

// start serves until the test ends.
func start(t *testing.T, config server.Config) *server.Server {
	t.Helper()
	s, stop := begin(t, config)
	t.Cleanup(stop)
	return s
}

// begin serves until stop is called, which waits for the end.
func begin(t *testing.T, config server.Config) (s *server.Server, stop func()) {
	t.Helper()
	if config.Endpoints == (server.Endpoints{}) {
		config.Endpoints = server.Endpoints{GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	}
	if config.Authorizer == nil {
		config.Authorizer = allowing()
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	config.Log = testr.New(t)
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	return s, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

// dial connects to the gRPC endpoint at target.
func dial(t *testing.T, target string, security credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if security == nil {
		security = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func client(t *testing.T, s *server.Server) authv3.AuthorizationClient {
	t.Helper()
	return authv3.NewAuthorizationClient(dial(t, "passthrough:///"+s.Addresses().GRPC, nil))
}

// checkRequest is what Envoy sends for a request with these headers.
func checkRequest(headers map[string]string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Principal: "spiffe://mesh/ns/app/sa/reader"},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Id: "1234", Method: http.MethodGet, Path: "/api/v1/pods?token=secret", Host: "hub", Headers: headers,
		}},
	}}
}

func get(t *testing.T, url string, header http.Header) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	return do(t, request)
}

// reply is a response that was read.
type reply struct {
	StatusCode int
	Header     http.Header
	Body       *bytes.Reader
}

// do sends a request on a connection of its own.
func do(t *testing.T, request *http.Request) reply {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply{StatusCode: response.StatusCode, Header: response.Header, Body: bytes.NewReader(body)}
}
