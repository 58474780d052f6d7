package agent

import (
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Values describe the agent of a managed cluster. A zero field retains the live
// value, or is the default.
type Values struct {
	install.Workload
	// ClusterName is the name on the hub.
	ClusterName string
	// Bootstrap is the kubeconfig that joins the hub; empty keeps the live one.
	Bootstrap []byte
	// Registration is how the cluster registers.
	Registration Registration
	// ExternalServer is the managed cluster's own address, for the hub to know.
	ExternalServer string
	// HostAlias makes the hub's name known in the agent's pods.
	HostAlias *operatorv1.HubApiServerHostAlias
	// PriorityClass of the agent's pods.
	PriorityClass string
	// PublishIssuer has the agent publish the cluster's token issuer on the hub,
	// or take it back; nil keeps.
	PublishIssuer *bool
	// Work is the work agent.
	Work Work
	// TakeOver replaces the agent of OCM; nil refuses to install over one.
	TakeOver *install.TakeOver
}

// Work is the agent that applies the ManifestWorks of the hub.
type Work struct {
	// Enabled installs it, or leaves it out; nil keeps, and a new agent has it.
	Enabled *bool
	// Permissions are its permissions on the cluster; empty keeps, and a new agent has
	// OCM's default.
	Permissions names.WorkPermissions
}

// Registration is how a cluster and its add-ons register.
type Registration struct {
	// Driver is the cluster's; nil keeps.
	Driver *operatorv1.RegistrationDriver
	// AddOns is how add-ons authenticate; nil keeps.
	AddOns *operatorv1.AddOnRegistrationDriver
	// CertificateSeconds is the lifetime to ask for of the client certificate; 0 leaves it to
	// the hub, and nil leaves it as it is, or DefaultCertificateSeconds for a new agent.
	CertificateSeconds *int32
	FeatureGates       []operatorv1.FeatureGate
	Annotations        map[string]string
	Labels             map[string]string
}
