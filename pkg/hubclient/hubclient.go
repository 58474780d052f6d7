package hubclient

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/connrotation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
)

// Static returns the client configuration of a kubeconfig whose credential does
// not change and which lies in dir with the files that it names. Other files are
// refused, and credential plugins are not run, see kubeconfig.Hub.Mounted.
// userAgent names the caller in the hub's audit log.
func Static(hub kubeconfig.Hub, dir, userAgent string) (*rest.Config, error) {
	if server, err := url.Parse(hub.Cluster.Server); err != nil || server.Scheme != "https" || hub.Cluster.InsecureSkipTLSVerify {
		return nil, fmt.Errorf("%w: it does not verify the hub; use an https URL and a certificate authority", kubeconfig.ErrInvalid)
	}
	mounted, err := hub.Mounted(dir)
	if err != nil {
		return nil, err
	}
	config, err := mounted.Config()
	if err != nil {
		return nil, err
	}
	// The API server's priority and fairness limits us.
	config.QPS = -1
	config.UserAgent = userAgent
	config.Wrap(newInterruptible)
	return config, nil
}

// Conn is a connection to the hub whose network connections can be closed while
// the clients made from it live.
type Conn struct {
	config    *rest.Config
	dialer    *connrotation.Dialer
	transport *http.Transport
}

// New prepares a connection to hub; its user entry is not looked at. certificate
// returns the client certificate to show when a network connection begins; nil
// shows none.
func New(hub kubeconfig.Hub, dir string, certificate func() (*tls.Certificate, error)) (*Conn, error) {
	hub.User = clientcmdapi.AuthInfo{}
	config, err := Static(hub, dir, "")
	if err != nil {
		return nil, err
	}
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: its certificate authority is invalid", kubeconfig.ErrInvalid)
	}
	if trust == nil { // System roots.
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if certificate != nil {
		trust.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate() }
	}
	dial := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c := &Conn{dialer: connrotation.NewDialer(dial.DialContext)}
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
		Host: config.Host, APIPath: config.APIPath, QPS: config.QPS,
		Transport: c.transport, WrapTransport: newInterruptible,
	}
	return c, nil
}

// Config returns the client configuration, without a user agent. Clients made from it
// survive Reset.
func (c *Conn) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Reset closes every network connection; the next request opens a new one. A
// network that lost a connection does not report it, and HTTP/2 would wait for it.
// A server looks at a client certificate only when a connection begins.
func (c *Conn) Reset() { c.dialer.CloseAll() }

// Close ends every network connection.
func (c *Conn) Close() {
	c.transport.CloseIdleConnections()
	c.dialer.CloseAll()
}
