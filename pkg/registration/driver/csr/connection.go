package csr

import (
	"crypto/tls"
	"errors"
	"sync/atomic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// errNoCertificate says that a connection was used before it had a certificate.
var errNoCertificate = errors.New("no client certificate yet")

// conn is a connection with a client certificate held in memory.
type conn struct {
	*hubclient.Conn

	certificate atomic.Pointer[tls.Certificate]
}

// Open implements driver.Agent.
func (a *Agent) Open(hub kubeconfig.Hub, dir string, stored driver.Data) (driver.Connection, error) {
	c := &conn{}
	var err error
	c.Conn, err = hubclient.New(hub, dir, func() (*tls.Certificate, error) {
		if current := c.certificate.Load(); current != nil {
			return current, nil
		}
		return nil, errNoCertificate
	})
	if err != nil {
		return nil, err
	}
	return c, c.Reload(stored)
}

// Reload implements driver.Connection. It closes the network connections that
// were opened with the certificate before: a server looks at a certificate only
// when a connection begins.
func (c *conn) Reload(stored driver.Data) error {
	pair, err := tls.X509KeyPair(stored[names.KeyTLSCert], stored[names.KeyTLSKey])
	if err != nil {
		return errors.New("the client certificate does not match its key")
	}
	if c.certificate.Swap(&pair) != nil {
		c.Reset()
	}
	return nil
}
