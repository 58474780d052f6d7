package agent

import (
	"context"
	"errors"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/connection"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// adopt keeps the credential when the bootstrap kubeconfig changed and still
// leads to the same hub, at another address or behind another certificate
// authority: there is nothing that a person would have to accept again. The hub
// is verified as the new bootstrap kubeconfig says before it sees the
// certificate, and a hub that does not know the certificate refuses it. It
// reports whether the credential was kept.
func (a *Agent) adopt(ctx context.Context, s *snapshot) bool {
	if s.bootstrap == nil || !errors.Is(s.facts.Problem, errOtherHub) {
		return false
	}
	validity, err := s.driver.Inspect(s.stored)
	if err != nil || validity.Expired(a.config.Clock.Now()) || !s.named() {
		return false
	}
	old, err := kubeconfig.ParseHub(s.stored[names.KeyKubeconfig])
	if err != nil || a.tryCredential(ctx, s) != nil {
		return false
	}
	issued := &driver.Issued{Data: driver.Data{}, User: clientcmdapi.AuthInfo{
		ClientCertificate: old.User.ClientCertificate, ClientKey: old.User.ClientKey,
	}, Validity: validity}
	data, err := hubData(*s.bootstrap, s.identity, issued)
	if err == nil {
		err = a.store.put(ctx, a.config.Secrets.Hub, data)
	}
	if err != nil {
		a.log.Info("Cannot keep the credential for the new bootstrap kubeconfig", "reason", err.Error())
		return false
	}
	a.events.normal(names.EventSecretSave, "Adopt", "the hub at %s knows the credential, so it is kept", s.bootstrap.Cluster.Server)
	return true
}

// tryCredential reads the agent's own ManagedCluster at the bootstrap
// kubeconfig's hub with the stored credential.
func (a *Agent) tryCredential(ctx context.Context, s *snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := connection.New(*s.bootstrap, a.store.bootstrapDir())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Rotate(s.stored[names.KeyTLSCert], s.stored[names.KeyTLSKey]); err != nil {
		return err
	}
	hub, err := newHubClient(conn.Config())
	if err != nil {
		return err
	}
	return hub.Get(ctx, client.ObjectKey{Name: s.identity.Cluster}, &clusterv1.ManagedCluster{})
}

// named reports whether what is stored was stored under the agent's names.
func (s *snapshot) named() bool {
	return string(s.stored[names.KeyClusterName]) == s.identity.Cluster && string(s.stored[names.KeyAgentName]) == s.identity.Agent
}
