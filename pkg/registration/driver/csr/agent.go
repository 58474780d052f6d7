package csr

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AgentConfig is what an Agent asks for.
type AgentConfig struct {
	// Identity is who the certificate is for.
	Identity driver.Identity
	// ExpirationSeconds is the requested lifetime; 0 leaves it to the hub.
	ExpirationSeconds int32
	// Clock is the time that certificates and back-offs are judged by.
	Clock clock.PassiveClock
}

// Agent obtains client certificates by CertificateSigningRequests. It is
// stateless: what it must remember is in the pending data.
type Agent struct {
	requester requester
}

var _ driver.Agent = (*Agent)(nil)

// NewAgent returns the driver for config.
func NewAgent(config AgentConfig) *Agent {
	cluster := config.Identity.Cluster
	return &Agent{requester{clock: config.Clock, wanted: wanted{
		owner:             cluster,
		user:              names.AgentUser(cluster, config.Identity.Agent),
		groups:            sorted([]string{names.ClusterGroup(cluster), names.GroupManagedClusters}),
		prefix:            cluster,
		labels:            map[string]string{names.LabelClusterName: cluster},
		lacks:             names.LabelAddOnName,
		signer:            certificatesv1.KubeAPIServerClientSignerName,
		expirationSeconds: config.ExpirationSeconds,
		words: words{
			approve: func(_, fingerprint string) string {
				return fmt.Sprintf("waiting for a hub administrator to accept %s (key %s); run on the hub: kubectl ocm accept --clusters %s", cluster, fingerprint, cluster)
			},
			sign: waitsForHubSigner,
		},
	}}}
}

// waitsForHubSigner says that the hub's own signer is to sign a CSR.
func waitsForHubSigner(name string) string {
	return fmt.Sprintf("CertificateSigningRequest %s is approved and waits for the hub's signer %s; a hub without that signer, such as EKS, needs another registration driver",
		name, certificatesv1.KubeAPIServerClientSignerName)
}

// Decorate implements driver.Agent: the hub side of this driver needs nothing.
func (a *Agent) Decorate(*clusterv1.ManagedCluster) {}

// Inspect implements driver.Agent.
func (a *Agent) Inspect(stored driver.Data) (credential.Validity, error) {
	return a.requester.wanted.inspect(stored[names.KeyTLSKey], stored[names.KeyTLSCert])
}

// Obtain implements driver.Agent. The first step makes a key and nothing else;
// the CSR's name follows from the key, so the steps behind it can be repeated
// by anyone who has the pending data.
func (a *Agent) Obtain(ctx context.Context, hub client.Client, pending driver.Data) (driver.Step, error) {
	return a.requester.obtain(ctx, hub, pending)
}
