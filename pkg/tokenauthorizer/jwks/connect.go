package jwks

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// Limits of what a server may do.
const (
	maxRedirects   = 3
	maxHeaderBytes = 64 << 10
)

// visit is one read of a source over the network. Files with CAs and
// credentials are read for every visit, so that they can be rotated, and no
// connection is kept: the next visit is an hour away.
type visit struct {
	client *http.Client
	// server is the API server of the kubeconfig, if there is one.
	server *url.URL
}

// connect prepares to read the source of cluster.
func connect(cluster Cluster) (*visit, error) {
	source := cluster.Source
	roots, err := source.roots()
	if err != nil {
		return nil, err
	}
	v := &visit{}
	plain := newTransport(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	courier := &courier{plain: plain, trusted: plain}
	switch {
	case source.Auth.TokenFile != "":
		token, err := readToken(source.Auth.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token file: %w", err)
		}
		courier.trusted = transport.NewBearerAuthRoundTripper(token, plain)
		courier.home, err = url.Parse(source.home(cluster.Issuer))
		if err != nil {
			return nil, err
		}
	case source.Auth.KubeconfigFile != "":
		if courier.trusted, courier.home, err = withKubeconfig(source.Auth.KubeconfigFile, roots); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", source.Auth.KubeconfigFile, err)
		}
		v.server = courier.home
	}
	v.client = &http.Client{Transport: courier, CheckRedirect: stayHome}
	return v, nil
}

func readToken(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	return token, nil
}

// roots returns the pool of the configured CA, nil for the system's roots.
func (s Source) roots() (*x509.CertPool, error) {
	data := s.CA
	if s.CAFile != "" {
		var err error
		if data, err = os.ReadFile(s.CAFile); err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("the CA has no PEM certificate")
	}
	return pool, nil
}

// home is the URL whose server gets the credential.
func (s Source) home(issuer string) string {
	switch {
	case s.URI != "":
		return s.URI
	case s.Discovery != nil && s.Discovery.URL != "":
		return s.Discovery.URL
	default:
		return issuer
	}
}

// withKubeconfig returns a transport with the credential of a kubeconfig, and
// the server that it is for.
func withKubeconfig(name string, roots *x509.CertPool) (http.RoundTripper, *url.URL, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: name}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, nil, err
	}
	if config.Insecure {
		return nil, nil, errors.New("it does not verify its server, and keys from a server that was not verified prove nothing")
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, errors.New("its server is not a URL")
	}
	if err := secureURL("its server", config.Host); err != nil {
		return nil, nil, err
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	if secured == nil {
		secured = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if roots != nil {
		secured.RootCAs = roots
	}
	base := newTransport(secured)
	if config.Proxy != nil {
		base.Proxy = config.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, base)
	return wrapped, server, err
}

func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// stayHome follows redirects on one host only: another server must not decide about
// keys, nor see requests to this one.
func stayHome(request *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case request.URL.Scheme != "https" || !sameHost(request.URL, via[0].URL):
		return fmt.Errorf("it redirects to another server, %s: configure that one if it is right", request.URL.Host)
	}
	return nil
}

// courier gives the credential to the server that it is for and to no other.
type courier struct {
	plain, trusted http.RoundTripper
	home           *url.URL
}

func (c *courier) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.home != nil && sameHost(request.URL, c.home) {
		return c.trusted.RoundTrip(request)
	}
	return c.plain.RoundTrip(request)
}

// sameHost says whether two https URLs are of one server.
func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}
