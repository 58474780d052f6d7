package extauthzproxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// DefaultTimeout is how long Envoy waits for an answer by default.
const DefaultTimeout = 200 * time.Millisecond

// Config is the filter's configuration, under Envoy's names where it has one.
type Config struct {
	// Authorizer is the gRPC target of the authorizer, such as
	// passthrough:///127.0.0.1:9001 or unix:///run/authz.sock.
	Authorizer string
	// Endpoints, if set, are host:port of several authorizers instead, which
	// take turns.
	Endpoints []string
	// Credentials is how it is known; nil is plain text.
	Credentials credentials.TransportCredentials
	// Upstream is where requests go that were allowed, and Transport how; nil
	// is the default transport.
	Upstream  *url.URL
	Transport http.RoundTripper
	// Timeout is grpc_service.timeout; 0 is DefaultTimeout.
	Timeout time.Duration
	// Retry is grpc_service.retry_policy with one retry on "unavailable", within
	// the timeout.
	Retry bool
	// StatusOnError is status_on_error; 0 is 403, as in Envoy.
	StatusOnError int
	// FailureModeAllow is failure_mode_allow.
	FailureModeAllow bool
	// EncodeRawHeaders is encode_raw_headers.
	EncodeRawHeaders bool
	// ContextExtensions are the route's.
	ContextExtensions map[string]string
	// RemoveHeaders is the route's request_headers_to_remove.
	RemoveHeaders []string
	// Principal is the one of the listener's own certificate.
	Principal string
	// Observe, if set, is called with every request; several may be at once.
	Observe func(Observation)
}

// Observation is the part of a request that Envoy's access log could show.
type Observation struct {
	// Request is the request to the authorizer.
	Request *authv3.CheckRequest
	// Outcome is how the answer was taken, and Err why the call failed.
	Outcome Outcome
	Err     error
	// Metadata is the authorizer's metadata for the access log.
	Metadata map[string]any
}

// Proxy is an http.Handler. Close it when its server has ended.
type Proxy struct {
	config  Config
	conn    *grpc.ClientConn
	client  authv3.AuthorizationClient
	forward *httputil.ReverseProxy
}

// New returns a proxy. It does not wait for the authorizer to be there.
func New(config Config) (*Proxy, error) {
	if config.Credentials == nil {
		config.Credentials = insecure.NewCredentials()
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	if config.StatusOnError == 0 {
		config.StatusOnError = http.StatusForbidden
	}
	conn, err := dial(config)
	if err != nil {
		return nil, fmt.Errorf("authorizer %s: %w", config.Authorizer, err)
	}
	p := &Proxy{config: config, conn: conn, client: authv3.NewAuthorizationClient(conn)}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(config.Upstream)
			for _, key := range config.RemoveHeaders {
				r.Out.Header.Del(key)
			}
		},
		Transport:     config.Transport,
		FlushInterval: -1, // Watches must not wait for a full buffer.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			reply(w, http.StatusServiceUnavailable, nil, "upstream connect error: "+err.Error())
		},
	}
	return p, nil
}

// dial prepares connections to the authorizers, which take turns.
func dial(config Config) (*grpc.ClientConn, error) {
	service := `{"loadBalancingConfig":[{"round_robin":{}}]}`
	if config.Retry {
		service = `{"loadBalancingConfig":[{"round_robin":{}}],"methodConfig":[{"name":[{}],"retryPolicy":{` +
			`"maxAttempts":2,"initialBackoff":"0.025s","maxBackoff":"0.25s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(config.Credentials), grpc.WithDefaultServiceConfig(service),
		// Envoy looks again every second or so, not after minutes.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}}),
	}
	if len(config.Endpoints) == 0 {
		return grpc.NewClient(config.Authorizer, options...)
	}
	static := manual.NewBuilderWithScheme("endpoints")
	var state resolver.State
	for _, endpoint := range config.Endpoints {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: endpoint}}})
	}
	static.InitialState(state)
	return grpc.NewClient("endpoints:///authorizers", append(options, grpc.WithResolvers(static))...)
}

// Close ends the connection to the authorizer.
func (p *Proxy) Close() error { return p.conn.Close() }

// ServeHTTP asks the authorizer and forwards the request, or answers it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", string(uuid.NewUUID()))
	}
	request := p.checkRequest(r, strconv.FormatUint(rand.Uint64(), 10), time.Now()) //nolint:gosec,forbidigo // a stream's number, at its time
	response, err := p.check(r.Context(), request)
	outcome := outcomeOf(response, err)
	if p.config.Observe != nil {
		p.config.Observe(Observation{Request: request, Outcome: outcome, Err: err, Metadata: metadata(response)})
	}
	switch {
	case outcome == Denied:
		deny(w, response.GetDeniedResponse())
		return
	case outcome == Failed && !p.config.FailureModeAllow:
		p.fail(w, response)
		return
	case outcome == Failed:
		r.Header.Set("X-Envoy-Auth-Failure-Mode-Allowed", "true")
	default:
		allow(response.GetOkResponse(), r.Header)
	}
	p.forward.ServeHTTP(&decorated{ResponseWriter: w, add: response.GetOkResponse().GetResponseHeadersToAdd()}, r)
}

// check asks within the deadline.
func (p *Proxy) check(ctx context.Context, request *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	return p.client.Check(ctx, request)
}

// decorated adds the answer's response headers to those of the upstream.
type decorated struct {
	http.ResponseWriter

	add []*corev3.HeaderValueOption
}

func (d *decorated) WriteHeader(status int) {
	if status >= http.StatusOK {
		for _, option := range d.add {
			mutate(d.Header(), option)
		}
		d.add = nil
	}
	d.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush and hijack.
func (d *decorated) Unwrap() http.ResponseWriter { return d.ResponseWriter }
