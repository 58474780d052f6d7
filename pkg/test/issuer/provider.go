package issuer

import (
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// The paths at which a Provider, like an API server, serves.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/openid/v1/jwks"
)

// Provider is an https server of discovery and keys, with a CA of its own.
type Provider struct {
	// URL of the server, without a path.
	URL string
	// CA is the PEM certificate to trust.
	CA []byte

	mu      sync.Mutex
	keys    []byte
	answer  http.HandlerFunc
	header  http.Header
	fetches int
	issuer  string
	jwksURI string
}

// NewProvider starts a provider of keys, whose issuer is its own URL.
func NewProvider(tb testing.TB, keys ...*Key) *Provider {
	tb.Helper()
	p := &Provider{keys: JWKS(tb, keys...), header: http.Header{}}
	server := httptest.NewTLSServer(http.HandlerFunc(p.serve))
	tb.Cleanup(server.Close)
	p.URL, p.issuer, p.jwksURI = server.URL, server.URL, server.URL+KeysPath
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return p
}

// Serve has the provider serve keys from now on.
func (p *Provider) Serve(tb testing.TB, keys ...*Key) {
	tb.Helper()
	p.ServeData(JWKS(tb, keys...))
}

// ServeData has the provider serve data instead of a key set.
func (p *Provider) ServeData(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = data
}

// Answer has handler answer requests for keys; nil ends that.
func (p *Provider) Answer(handler http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = handler
}

// Down has the provider answer requests for keys with 503 until up is called.
func (p *Provider) Down() (up func()) {
	p.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	return func() { p.Answer(nil) }
}

// Hold has requests for keys wait until release is called, once.
func (p *Provider) Hold() (release func()) {
	held := make(chan struct{})
	p.Answer(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
			p.write(w)
		case <-r.Context().Done():
		}
	})
	return func() {
		p.Answer(nil)
		close(held)
	}
}

// SetHeader sets a header of answers with keys.
func (p *Provider) SetHeader(name, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.header.Set(name, value)
}

// Describe changes what the discovery document says.
func (p *Provider) Describe(issuer, jwksURI string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issuer, p.jwksURI = issuer, jwksURI
}

// Fetches counts the requests for keys.
func (p *Provider) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	answer := p.answer
	document := map[string]string{"issuer": p.issuer, "jwks_uri": p.jwksURI}
	if r.URL.Path != DiscoveryPath {
		p.fetches++
	}
	p.mu.Unlock()
	switch {
	case r.URL.Path == DiscoveryPath:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	case answer != nil:
		answer(w, r)
	default:
		p.write(w)
	}
}

func (p *Provider) write(w http.ResponseWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", "application/jwk-set+json")
	_, _ = w.Write(p.keys)
}
