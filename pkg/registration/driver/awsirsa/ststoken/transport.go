package ststoken

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Transport returns a round tripper that presents a token of s with every
// request. A request that carries a credential of its own is sent as it is.
func (s *Source) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{source: s, next: next}
}

type transport struct {
	source *Source
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return t.next.RoundTrip(r)
	}
	token, err := t.source.Token(r.Context())
	if err != nil {
		return nil, err
	}
	r = utilnet.CloneRequest(r)
	r.Header.Set("Authorization", "Bearer "+token.Value)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.source.Forget()
	}
	return response, err
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
