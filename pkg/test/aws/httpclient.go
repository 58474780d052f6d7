package aws

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// HTTPClient reaches this cloud through its proxy, until the test ends.
func (c *Cloud) HTTPClient(tb testing.TB) *http.Client {
	tb.Helper()
	proxy, err := url.Parse(c.ProxyURL())
	if err != nil {
		tb.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA()) {
		tb.Fatal("the proxy's CA cannot be read")
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: ownBody{transport}}
}

// ownBody sends requests with bodies that no other code closes.
//
// The SDK closes a request's body when the answer begins. net/http may still be
// looking for the end of that body; smithy-go then returns io.EOF from WriteTo,
// net/http takes it for a failed write and closes the connection under the answer:
// "use of closed network connection". The SDK retries that. A test that has to see
// every failure does not retry, and would see this one on a busy machine.
type ownBody struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o ownBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return o.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the body of the request: %w", err)
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return o.next.RoundTrip(own)
}
