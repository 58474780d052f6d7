package kubeconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// ErrInvalid is wrapped by every error about a kubeconfig's content.
var ErrInvalid = errors.New("invalid kubeconfig")

// Hub is a hub kubeconfig taken apart.
type Hub struct {
	// ClusterName is the name of the cluster entry. An agent that sees another
	// name in its bootstrap kubeconfig registers again.
	ClusterName string
	// Cluster is the API server and how to trust it.
	Cluster clientcmdapi.Cluster
	// User is the credential.
	User clientcmdapi.AuthInfo
}

// ParseHub reads the current context of a kubeconfig. It is an error, wrapping
// ErrInvalid, when the file cannot be parsed or has no current context with a
// server; a kubeconfig with a single context needs no current-context.
func ParseHub(data []byte) (Hub, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		// The parser's message may quote the file, and with it a token.
		return Hub{}, fmt.Errorf("%w: it cannot be parsed", ErrInvalid)
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok && config.CurrentContext == "" && len(config.Contexts) == 1 {
		for _, context = range config.Contexts {
			ok = true
		}
	}
	if !ok {
		return Hub{}, fmt.Errorf("%w: no current context", ErrInvalid)
	}
	cluster, ok := config.Clusters[context.Cluster]
	if !ok || cluster.Server == "" {
		return Hub{}, fmt.Errorf("%w: no server in the current context", ErrInvalid)
	}
	hub := Hub{ClusterName: context.Cluster, Cluster: *cluster}
	if user, ok := config.AuthInfos[context.AuthInfo]; ok {
		hub.User = *user
	}
	return hub, nil
}

// SameServer reports whether two kubeconfigs lead to the same API server by the
// same way and trust. If not, a credential for one is no credential for the
// other and the agent bootstraps again.
func (h Hub) SameServer(other Hub) bool {
	a, b := h.Cluster, other.Cluster
	return h.ClusterName == other.ClusterName &&
		a.Server == b.Server && a.ProxyURL == b.ProxyURL &&
		a.CertificateAuthority == b.CertificateAuthority &&
		slices.Equal(a.CertificateAuthorityData, b.CertificateAuthorityData)
}

// Digest identifies the API server of h in stored data.
func (h Hub) Digest() string {
	digest := sha256.New()
	for _, part := range []string{h.ClusterName, h.Cluster.Server, h.Cluster.ProxyURL, string(h.Cluster.CertificateAuthorityData)} {
		_, _ = digest.Write([]byte(part + "\x00")) // A hash never fails to write.
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// Encode returns the kubeconfig for connecting to h's API server as user, with the
// entry names of OCM's agents.
func (h Hub) Encode(user clientcmdapi.AuthInfo) ([]byte, error) {
	return h.encode(user, names.KubeconfigUser, names.KubeconfigContext, names.KubeconfigContextNamespace)
}

// EncodeBootstrap returns the kubeconfig that an agent joins h with, with
// the names that clusteradm gives its entries.
func (h Hub) EncodeBootstrap() ([]byte, error) {
	return h.encode(h.User, names.BootstrapKubeconfigUser, names.BootstrapKubeconfigUser, "default")
}

func (h Hub) encode(user clientcmdapi.AuthInfo, userName, contextName, namespace string) ([]byte, error) {
	cluster := clientcmdapi.Cluster{
		Server:                   h.Cluster.Server,
		ProxyURL:                 h.Cluster.ProxyURL,
		TLSServerName:            h.Cluster.TLSServerName,
		CertificateAuthority:     h.Cluster.CertificateAuthority,
		CertificateAuthorityData: h.Cluster.CertificateAuthorityData,
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{h.ClusterName: &cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{userName: &user},
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: h.ClusterName, AuthInfo: userName, Namespace: namespace}},
		CurrentContext: contextName,
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return data, nil
}
