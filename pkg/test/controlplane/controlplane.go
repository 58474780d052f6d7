package controlplane

import (
	"net"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ControlPlane is a running control plane. Its methods may be called from any
// goroutine of a test.
type ControlPlane struct {
	// CAData is the PEM certificate of the cluster's CA.
	CAData []byte
	// URL is the address of the API server.
	URL string

	// dir is empty with -short, which leaves out what needs a control plane.
	dir    string
	access controlplane.Access
	admin  *rest.Config
}

// newControlPlane is the control plane with the state directory dir.
func newControlPlane(dir string, access controlplane.Access) (*ControlPlane, error) {
	admin, err := access.ConfigFor(controlplane.AdminUser, controlplane.AdminGroup)
	if err != nil {
		return nil, err
	}
	return &ControlPlane{CAData: access.Authority.PEM(), URL: access.URL, dir: dir, access: access, admin: admin}, nil
}

// Config is the administrator's connection, a copy for each call, without
// client-side rate limiting.
func (c *ControlPlane) Config(tb testing.TB) *rest.Config {
	tb.Helper()
	leaveOut(tb, "a control plane")
	return rest.CopyConfig(c.admin)
}

// ConfigFor is the connection of a user with groups, by a client certificate.
func (c *ControlPlane) ConfigFor(tb testing.TB, user string, groups ...string) *rest.Config {
	tb.Helper()
	leaveOut(tb, "a control plane")
	config, err := c.access.ConfigFor(user, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	return config
}

// ConfigForAccount is the connection of a user that has the name and the groups
// of a ServiceAccount, which need not exist.
func (c *ControlPlane) ConfigForAccount(tb testing.TB, namespace, name string) *rest.Config {
	tb.Helper()
	return c.ConfigFor(tb, names.ServiceAccountUser(namespace, name),
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
}

// ConfigForToken is the connection of whom a bearer token belongs to.
func (c *ControlPlane) ConfigForToken(token string) *rest.Config {
	return &rest.Config{
		Host:            c.URL,
		QPS:             -1,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData},
	}
}

// Kubeconfig is the administrator's kubeconfig, whose cluster, user and context
// are called name.
func (c *ControlPlane) Kubeconfig(tb testing.TB, name string) []byte {
	tb.Helper()
	leaveOut(tb, "a control plane")
	data, err := c.access.Kubeconfig(name, controlplane.AdminUser, controlplane.AdminGroup)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// KubeconfigFor is the kubeconfig of a user with groups.
func (c *ControlPlane) KubeconfigFor(tb testing.TB, user string, groups ...string) []byte {
	tb.Helper()
	leaveOut(tb, "a control plane")
	data, err := c.access.Kubeconfig("local", user, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// ServingCert is a key pair for a server at an address, signed by the cluster's CA.
func (c *ControlPlane) ServingCert(tb testing.TB, name string, ip net.IP) (cert, key []byte) {
	tb.Helper()
	leaveOut(tb, "a control plane")
	cert, key, err := c.access.Authority.Server(clock.RealClock{}.Now(), name, nil, []net.IP{ip})
	if err != nil {
		tb.Fatal(err)
	}
	return cert, key
}

// Client is the administrator's client, with the scheme of our clients.
func (c *ControlPlane) Client(tb testing.TB) client.Client {
	tb.Helper()
	return c.ClientFor(tb, c.Config(tb))
}

// ClientFor is a client for any connection, with the scheme of our clients.
func (c *ControlPlane) ClientFor(tb testing.TB, config *rest.Config) client.Client {
	tb.Helper()
	leaveOut(tb, "a control plane")
	cl, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		tb.Fatal(err)
	}
	return cl
}

// AuditLog is the file that the API server writes with WithAuditLog. What an earlier
// holder of a leased control plane did is in it as well.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.dir, auditLog) }

// EgressSocket is where the API server looks for an HTTP CONNECT proxy with WithEgress.
func (c *ControlPlane) EgressSocket() string { return filepath.Join(c.dir, egressSocket) }
