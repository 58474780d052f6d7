package connection

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
)

// userAgent names us in the hub's audit log.
const userAgent = "kubectl-ocm/registration-agent"

// errNoCertificate says that a connection was used before its first Rotate.
var errNoCertificate = errors.New("no client certificate yet")

// Static returns the client configuration of a kubeconfig whose credential does
// not change. Files that it names by relative path are looked for in dir.
func Static(hub kubeconfig.Hub, dir string) (*rest.Config, error) {
	const one = "hub"
	if server, err := url.Parse(hub.Cluster.Server); err != nil || server.Scheme != "https" || hub.Cluster.InsecureSkipTLSVerify {
		return nil, fmt.Errorf("%w: it does not verify the hub; use an https URL and a certificate authority", kubeconfig.ErrInvalid)
	}
	user := hub.User
	cluster := hub.Cluster
	// Relative paths are resolved against the place that the entry came from.
	user.LocationOfOrigin = filepath.Join(dir, "kubeconfig")
	cluster.LocationOfOrigin = user.LocationOfOrigin
	raw := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{one: &cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{one: &user},
		Contexts:       map[string]*clientcmdapi.Context{one: {Cluster: one, AuthInfo: one}},
		CurrentContext: one,
	}
	if err := clientcmd.ResolveLocalPaths(&raw); err != nil {
		return nil, fmt.Errorf("%w: %w", kubeconfig.ErrInvalid, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be used", kubeconfig.ErrInvalid)
	}
	// The API server's priority and fairness limits us.
	config.QPS = -1
	config.UserAgent = userAgent
	return config, nil
}

// Conn is a way to the hub with a client certificate held in memory.
type Conn struct {
	config      *rest.Config
	certificate atomic.Pointer[tls.Certificate]
	dialer      *connrotation.Dialer
	transport   *http.Transport
}

// New prepares the way to hub; its user entry is not looked at. The first
// Rotate must come before the first request.
func New(hub kubeconfig.Hub, dir string) (*Conn, error) {
	hub.User = clientcmdapi.AuthInfo{}
	config, err := Static(hub, dir)
	if err != nil {
		return nil, err
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its certificate authority cannot be used", kubeconfig.ErrInvalid)
	}
	if trust == nil { // System roots.
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	dial := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c := &Conn{dialer: connrotation.NewDialer(dial.DialContext)}
	trust.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if current := c.certificate.Load(); current != nil {
			return current, nil
		}
		return nil, errNoCertificate
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	c.transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return proxy(r) },
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     trust,
		MaxIdleConnsPerHost: 25,
		DialContext:         c.dialer.DialContext,
	})
	c.config = &rest.Config{
		Host: config.Host, APIPath: config.APIPath, QPS: config.QPS, UserAgent: config.UserAgent,
		Transport: c.transport,
	}
	return c, nil
}

// Config returns the client configuration. Clients made from it survive Rotate.
func (c *Conn) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Rotate makes every request from now on show this certificate, and closes the
// connections that were opened with the one before: a server looks at a
// certificate only when a connection begins. Requests under way fail and are
// to be repeated, watches resume.
func (c *Conn) Rotate(certPEM, keyPEM []byte) error {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return errors.New("the client certificate does not fit its key")
	}
	if c.certificate.Swap(&pair) != nil {
		c.dialer.CloseAll()
	}
	return nil
}

// Reset closes every connection; the next request opens a new one. A network
// that forgot a connection says nothing, and HTTP/2 would wait for it.
func (c *Conn) Reset() { c.dialer.CloseAll() }

// Close ends every connection.
func (c *Conn) Close() {
	c.transport.CloseIdleConnections()
	c.dialer.CloseAll()
}
