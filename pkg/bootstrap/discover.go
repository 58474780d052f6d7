package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// contactTimeout bounds one request of the first contact.
const contactTimeout = 15 * time.Second

// infoLimit bounds what is read from a server that is not verified yet.
const infoLimit = 1 << 20

// Endpoint is a hub and how to trust it. With neither CA nor Pins the system's
// roots have to know the hub's certificate.
type Endpoint struct {
	// Server is the URL of the API server.
	Server string
	// CA is the PEM bundle that --ca-file names.
	CA []byte
	// Pins name the hub's authorities.
	Pins []CAHash
	// ProxyURL is the proxy for the hub; empty means the environment's proxy settings.
	ProxyURL string
	// ProxyCA is the PEM bundle that verifies the proxy.
	ProxyCA []byte
}

// Trust says what a hub was verified against.
type Trust string

// The kinds of trust, as messages name them.
const (
	TrustCAFile Trust = "the given CA file"
	TrustPin    Trust = "the pinned CA hash"
	TrustSystem Trust = "the system's root certificates"
)

// Hub is a hub that was verified.
type Hub struct {
	// Trust says against what.
	Trust Trust
	// Date is the hub's time in its response; zero without one.
	Date time.Time
	// Cluster is the hub's cluster entry: server, authority and proxy.
	Cluster clientcmdapi.Cluster
}

// Bootstrap returns the kubeconfig that joins the hub with a token.
func (h Hub) Bootstrap(token string) kubeconfig.Hub {
	return kubeconfig.Hub{
		ClusterName: names.BootstrapKubeconfigCluster,
		Cluster:     h.Cluster,
		User:        clientcmdapi.AuthInfo{Token: token},
	}
}

// Discover verifies the hub. It sends no credential, and what an unverified
// server says is used for one thing only: to find the certificate that a pin
// names. Every error is an *Error.
func Discover(ctx context.Context, endpoint Endpoint) (Hub, error) {
	contact, err := newContact(endpoint)
	if err != nil {
		return Hub{}, err
	}
	ca, trust := endpoint.CA, TrustCAFile
	switch {
	case len(ca) > 0:
		if _, err := pemutil.ParseCertificates(ca); err != nil {
			return Hub{}, &Error{Kind: BadCA, Problem: "the CA file cannot be used", Try: "give a file with PEM certificates", Cause: err}
		}
	case len(endpoint.Pins) > 0:
		if ca, err = contact.find(ctx, endpoint.Pins); err != nil {
			return Hub{}, err
		}
		trust = TrustPin
	default:
		trust = TrustSystem
	}
	date, err := contact.verify(ctx, ca)
	if err != nil {
		return Hub{}, err
	}
	hub := Hub{Trust: trust, Date: date, Cluster: clientcmdapi.Cluster{Server: contact.server.String(), ProxyURL: endpoint.ProxyURL}}
	if len(ca) > 0 {
		hub.Cluster.CertificateAuthorityData = join(ca, endpoint.ProxyCA)
	}
	return hub, nil
}

// contact is one conversation without credentials.
type contact struct {
	server  *url.URL
	proxy   func(*http.Request) (*url.URL, error)
	proxyCA []byte
}

func newContact(endpoint Endpoint) (*contact, error) {
	server, err := ParseServer(endpoint.Server)
	if err != nil {
		return nil, err
	}
	c := &contact{server: server, proxy: http.ProxyFromEnvironment, proxyCA: endpoint.ProxyCA}
	if endpoint.ProxyURL != "" {
		proxy, err := url.Parse(endpoint.ProxyURL)
		if err != nil || proxy.Host == "" {
			return nil, &Error{Kind: BadServer, Problem: "the proxy URL is not valid", Try: "give it as http://HOST:PORT"}
		}
		c.proxy = http.ProxyURL(proxy)
	}
	return c, nil
}

// find returns the certificates that the pins name, from the chain that the
// server shows or from its public cluster-info.
func (c *contact) find(ctx context.Context, pins []CAHash) ([]byte, error) {
	resp, err := c.get(ctx, "/api/v1/namespaces/"+names.ClusterInfoNamespace+"/configmaps/"+names.ClusterInfoConfigMap, &tls.Config{
		MinVersion: tls.VersionTLS12,
		//nolint:gosec,forbidigo // Nothing secret is sent and nothing is trusted: the pin decides.
		InsecureSkipVerify: true,
	})
	if err != nil {
		return nil, c.explain(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var candidates []*x509.Certificate
	if resp.TLS != nil {
		candidates = resp.TLS.PeerCertificates
	}
	published := publishedCA(resp)
	candidates = append(candidates, published...)
	if ca := pinned(pins, candidates); len(ca) > 0 {
		return ca, nil
	}
	if len(published) == 0 {
		return nil, &Error{
			Kind:    Mismatch,
			Problem: fmt.Sprintf("the hub %s does not show the authority that the CA hash names: it publishes no cluster-info without login", c.server),
			Try:     "give the hub's CA with --ca-file; it is in the hub's kubeconfig",
		}
	}
	return nil, &Error{
		Kind:    Mismatch,
		Problem: fmt.Sprintf("the hub %s has another authority than the CA hash names; no credential was sent", c.server),
		Try:     "check the address and print the join command again on the hub; if both are right, the connection may be intercepted",
	}
}

// publishedCA reads the authorities of the cluster-info ConfigMap in a response.
func publishedCA(resp *http.Response) []*x509.Certificate {
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, infoLimit))
	if err != nil {
		return nil
	}
	var config corev1.ConfigMap
	if err := json.Unmarshal(data, &config); err != nil {
		return nil
	}
	info, err := ParseClusterInfo([]byte(config.Data["kubeconfig"]))
	if err != nil {
		return nil
	}
	certs, err := pemutil.ParseCertificates(info.CA)
	if err != nil {
		return nil
	}
	return certs
}

// verify shakes hands with the server and accepts only a certificate that ca,
// or without one the system's roots, has signed for this address.
func (c *contact) verify(ctx context.Context, ca []byte) (date time.Time, err error) {
	roots, err := x509.SystemCertPool()
	if err != nil || len(ca) > 0 {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(ca)
	roots.AppendCertsFromPEM(c.proxyCA)
	resp, err := c.get(ctx, "/version", &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
	if err != nil {
		return time.Time{}, c.explain(err)
	}
	// Any response is from the verified server; its date is optional.
	date, _ = http.ParseTime(resp.Header.Get("Date"))
	return date, resp.Body.Close()
}

// get sends one request without credentials and follows nothing.
func (c *contact) get(ctx context.Context, path string, config *tls.Config) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.String()+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "kubectl-ocm/"+buildinfo.Version)
	req.Header.Set("Accept", "application/json")
	//nolint:forbidigo // The field is read to be careful, not set.
	if unverified := config.InsecureSkipVerify; unverified {
		if err := c.refuseProxyPassword(req); err != nil {
			return nil, err
		}
	}
	client := &http.Client{
		Timeout:       contactTimeout,
		Transport:     &http.Transport{Proxy: c.proxy, TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client.Do(req)
}

// refuseProxyPassword keeps the password of a TLS proxy from being sent before
// the proxy is verified.
func (c *contact) refuseProxyPassword(req *http.Request) error {
	proxy, err := c.proxy(req)
	if err == nil && proxy != nil && proxy.Scheme == "https" && proxy.User != nil {
		return &Error{
			Kind:    Untrusted,
			Problem: "a proxy with a password cannot be used to look for the hub's CA, because it is not verified yet",
			Try:     "give the hub's CA with --ca-file and the proxy's with --proxy-ca-file",
		}
	}
	return nil
}

// explain says which step of the handshake failed.
func (c *contact) explain(err error) error {
	var (
		ours     *Error
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &ours), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &unknown):
		return &Error{
			Kind:    Untrusted,
			Problem: fmt.Sprintf("the certificate of the hub %s is signed by an unknown authority; no credential was sent", c.server),
			Try:     "give the hub's CA with --ca-file, or its hash with --hub-ca-hash as the hub's join command shows it",
		}
	case errors.As(err, &hostname):
		return &Error{
			Kind:    WrongHost,
			Problem: fmt.Sprintf("the certificate of the hub %s is for another address; no credential was sent", c.server),
			Try:     "use one of the addresses that the certificate names",
			Cause:   hostname,
		}
	case errors.As(err, &invalid):
		return &Error{
			Kind:    Untrusted,
			Problem: fmt.Sprintf("the certificate of the hub %s is not valid; no credential was sent", c.server),
			Try:     "check the clocks of both machines and the certificate",
			Cause:   invalid,
		}
	}
	return &Error{
		Kind:    Unreachable,
		Problem: fmt.Sprintf("the hub %s does not answer", c.server),
		Try:     "check the address, the firewall and the proxy from this machine; if only the managed cluster can reach it, give --ca-file and --skip-check=hub-address",
		Cause:   errors.Unwrap(err),
	}
}

func join(bundles ...[]byte) []byte {
	var out bytes.Buffer
	for _, b := range bundles {
		if len(b) == 0 {
			continue
		}
		out.Write(bytes.TrimSpace(b))
		out.WriteByte('\n')
	}
	return out.Bytes()
}
