package controlplane

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// AdminUser and AdminGroup are the identity of the cluster's administrator.
const (
	AdminUser  = "kubernetes-admin"
	AdminGroup = "system:masters"
)

// URL is the address of the API server.
func (c *ControlPlane) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port.port) }

// Port is the port of the API server on 127.0.0.1.
func (c *ControlPlane) Port() int { return c.port.port }

// Authority is the cluster's certificate authority.
func (c *ControlPlane) Authority() *Authority { return c.authority }

// Access connects users to the cluster.
func (c *ControlPlane) Access() Access {
	return Access{URL: c.URL(), Authority: c.authority, Clock: c.clock}
}

// Access connects users to a cluster with client certificates that the cluster's
// authority signs.
type Access struct {
	// URL is the address of the API server.
	URL       string
	Authority *Authority
	Clock     clock.PassiveClock
}

// ConfigFor returns the connection of a user with the given groups, by a client
// certificate made for this call. Client-side rate limiting is off.
func (a Access) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := a.Authority.Client(a.Clock.Now(), user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            a.URL,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.Authority.pem, CertData: cert, KeyData: key},
	}, nil
}

// Kubeconfig returns a kubeconfig for a user with the given groups, in which
// cluster, user and context carry the name name.
func (a Access) Kubeconfig(name, user string, groups ...string) ([]byte, error) {
	cert, key, err := a.Authority.Client(a.Clock.Now(), user, groups...)
	if err != nil {
		return nil, err
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: a.URL, CertificateAuthorityData: a.Authority.pem},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificateData: cert, ClientKeyData: key},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return data, nil
}

func (c *ControlPlane) writeKubeconfig(program, user string) error {
	data, err := c.Access().Kubeconfig("local", user)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(c.config.Dir, kubeconfigFile(program)), data)
}
