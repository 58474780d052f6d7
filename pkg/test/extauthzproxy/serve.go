package extauthzproxy

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// Before returns config for a proxy before the API server of a connection, of
// which it has nothing but the address and the CA: it needs no credential.
func Before(tb testing.TB, connection *rest.Config, config Config) Config {
	tb.Helper()
	var err error
	if config.Upstream, err = url.Parse(connection.Host); err != nil {
		tb.Fatal(err)
	}
	config.Transport, err = rest.TransportFor(&rest.Config{
		Host: connection.Host, TLSClientConfig: rest.TLSClientConfig{CAData: connection.CAData},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return config
}

// Serve runs a proxy on a port of its own until the test ends.
func Serve(tb testing.TB, config Config) *httptest.Server {
	tb.Helper()
	return serve(tb, config, (*httptest.Server).Start)
}

// ServeTLS is Serve with TLS, without which kubectl sends no token.
func ServeTLS(tb testing.TB, config Config) *httptest.Server {
	tb.Helper()
	return serve(tb, config, (*httptest.Server).StartTLS)
}

func serve(tb testing.TB, config Config, start func(*httptest.Server)) *httptest.Server {
	tb.Helper()
	proxy, err := New(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = proxy.Close() })
	server := httptest.NewUnstartedServer(proxy)
	start(server)
	tb.Cleanup(server.Close)
	return server
}
