package csr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// AgentConfig is the configuration of an Agent.
type AgentConfig struct {
	// Identity is the identity in the certificate.
	Identity driver.Identity
	// ExpirationSeconds is the requested lifetime; 0 leaves it to the hub.
	ExpirationSeconds int32
	// Clock evaluates certificates and back-offs.
	Clock clock.PassiveClock
}

// Agent obtains client certificates by CertificateSigningRequests. It is
// stateless: what it must remember is in the pending data.
type Agent struct {
	requester
}

var _ driver.Agent = (*Agent)(nil)

// NewAgent returns the driver for config.
func NewAgent(config AgentConfig) *Agent {
	cluster := config.Identity.Cluster
	return &Agent{requester: requester{clock: config.Clock, wanted: wanted{
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
				return fmt.Sprintf("waiting for a hub administrator to accept %s (key fingerprint %s); run on the hub: kubectl ocm accept --clusters %s", cluster, fingerprint, cluster)
			},
			sign: waitsForHubSigner,
		},
	}}}
}

// waitsForHubSigner says that the hub's own signer is to sign a CSR.
func waitsForHubSigner(name string) string {
	return fmt.Sprintf("CertificateSigningRequest %s is approved; waiting for the hub's signer %s. A hub without that signer needs another registration driver",
		name, certificatesv1.KubeAPIServerClientSignerName)
}

// Decorate implements driver.Agent: this driver needs nothing on the hub.
func (a *Agent) Decorate(*clusterv1.ManagedCluster) {}

// Renewal implements driver.Credential: a shorter requested lifetime replaces the
// certificate. The signers of add-ons choose the lifetime of their certificates.
func (a *Agent) Renewal() credential.RenewalPolicy {
	policy := a.requester.Renewal()
	policy.MaxLife = time.Duration(a.wanted.expirationSeconds) * time.Second
	return policy
}

// Report implements driver.Credential.
func (a *Agent) Report() driver.Report {
	report := a.requester.Report()
	report.Event = names.EventCertificateCreated
	return report
}

// Permissions implements driver.Agent.
func (a *Agent) Permissions() []authorizationv1.ResourceAttributes {
	var needed []authorizationv1.ResourceAttributes
	for _, verb := range []string{"create", "get", "list", "watch"} {
		needed = append(needed, authorizationv1.ResourceAttributes{
			Group: names.GroupCertificates, Resource: names.ResourceCertificateRequests, Verb: verb,
		})
	}
	return needed
}

// Fingerprint implements driver.Agent: of the certificate, which is no secret.
func (a *Agent) Fingerprint(stored driver.Data) string {
	if len(stored[names.KeyTLSCert]) == 0 {
		return ""
	}
	sum := sha256.Sum256(stored[names.KeyTLSCert])
	return hex.EncodeToString(sum[:])
}
