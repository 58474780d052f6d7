package install

import (
	"time"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Hub describes a hub. A zero field retains the live value, or is the default on a
// new hub.
type Hub struct {
	// Workload is what the pods are like.
	Workload
	// Server is the address under which managed clusters reach the hub.
	Server string
	// Catalog are the registration drivers that there are.
	Catalog driver.Catalog
	// Drivers are the registration drivers of the hub; the order does not matter. What
	// their settings leave out keeps what is live. Nil keeps the live drivers.
	Drivers []driver.HubSettings
	// KeepDrivers keeps the live drivers that Drivers does not name.
	KeepDrivers bool
	// FeatureGates are set in addition to the live ones.
	FeatureGates []operatorv1.FeatureGate
	// Features are the optional parts.
	Features FeatureChoice
	// AutoApproved are users whose clusters are accepted automatically.
	AutoApproved []string
	// BootstrapToken makes a Kubernetes bootstrap token as well.
	BootstrapToken bool
	// TakeOver replaces the hub of OCM; nil refuses to install over one.
	TakeOver *TakeOver
	// Cleanup deletes clusters that left and stayed denied. A schedule that is
	// empty removes a live job.
	Cleanup *Cleanup
}

// Workload is what the pods of the operator and its components are like.
type Workload struct {
	// Image overrides everything else.
	Image string
	// Registry replaces the registry and path of our image.
	Registry string
	// PullCredentials is a .dockerconfigjson for the image.
	PullCredentials []byte
	// Resources are the requests and limits of the components.
	Resources *operatorv1.ResourceRequirement
	// Placement says on which nodes they run.
	Placement *operatorv1.NodePlacement
	// KeepNamespace leaves creating the operator's namespace to the user.
	KeepNamespace bool
	// SyncLabels has the operator copy its resource's labels onto what it applies; nil
	// keeps.
	SyncLabels *bool
}

// Cleanup is the opt-in job that deletes clusters that left the hub.
type Cleanup struct {
	// After is how long a cluster that unjoined stays denied before it goes.
	After time.Duration
	// Schedule is a cron expression.
	Schedule string
}

// Klusterlet describes the agent of a managed cluster. A zero field retains the live
// value, or is the default.
type Klusterlet struct {
	Workload
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
	TakeOver *TakeOver
}

// Work is the agent that applies the ManifestWorks of the hub.
type Work struct {
	// Enabled installs it, or leaves it out; nil keeps, and a new agent has it.
	Enabled *bool
	// Permissions are what it may do on the cluster; empty keeps, and a new agent has
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
