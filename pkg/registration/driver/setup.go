package driver

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
)

// Setup is the way of one driver from what an administrator says to what runs: from the
// settings in a ClusterManager and a Klusterlet to the flags of the hub's registration
// controller and of the agent. It has no state, and evaluates settings without a request,
// so that commands and operators reject the same settings.
//
// Commands, operators and installations know a driver of clusters by its Setup only,
// which a Catalog has.
type Setup interface {
	Named
	CommandSetup
	HubSetup
	AgentSetup
}

// Named is the naming of a driver in settings.
type Named interface {
	// Type is the driver, as spec.registrationConfiguration names it.
	Type() AuthType
	// Aliases are other names of the driver, which are read and never written.
	Aliases() []string
	// AccountKeys are the annotations that a Runtime of it may have.
	AccountKeys() []string
}

// CommandSetup is the part of a Setup that is about commands. Each call returns new flags.
type CommandSetup interface {
	InitFlags() InitFlags
	JoinFlags() JoinFlags
	AcceptFlags() AcceptFlags
}

// HubSetup is the part of a Setup that is about a hub.
type HubSetup interface {
	// Retain returns the settings that a hub has after a change: what wanted leaves out is
	// as in live, which is the zero value on a new hub.
	Retain(wanted, live HubSettings) HubSettings
	// ValidateHub returns everything with which the registration controller would not
	// start. The errors begin with the fields and annotations that they are about.
	ValidateHub(settings HubSettings) error
	// HubRuntime returns what the registration controller needs to run. The settings
	// are valid.
	HubRuntime(settings HubSettings) Runtime
	// HubFlags returns new flags of the registration controller.
	HubFlags() HubFlags
	// Grants says what the driver grants to clusters outside the API of the hub.
	Grants() Grants
}

// AgentSetup is the part of a Setup that is about managed clusters.
type AgentSetup interface {
	// ValidateAgent returns why the agent would not start with the settings of a
	// Klusterlet. The error begins with the field that it is about.
	ValidateAgent(settings operatorv1.RegistrationDriver) error
	// AgentRuntime returns what the agent needs to run. The settings are valid.
	AgentRuntime(settings operatorv1.RegistrationDriver) Runtime
	// AgentFlags returns new flags of the agent.
	AgentFlags() AgentFlags
	// HubID identifies the hub of an agent with these settings, under any of its
	// addresses; empty if the settings do not say.
	HubID(settings operatorv1.RegistrationDriver) string
}

// Connector is implemented by the Setup of a driver whose kubeconfig in the hub kubeconfig
// Secret works in the pods of the agent only.
type Connector interface {
	// Connect opens the connection that an installed agent has to its hub, for an
	// administrator of the managed cluster, with what that administrator may request
	// there. It returns nil if the kubeconfig is from another driver.
	Connect(ctx context.Context, managed client.Client, agent Installed) (Connection, error)
}

// Installed is an agent as an administrator of its cluster sees it.
type Installed struct {
	// Identity is who the agent is on the hub.
	Identity Identity
	// Settings are the driver's settings in its Klusterlet.
	Settings operatorv1.RegistrationDriver
	// Account is its ServiceAccount.
	Account client.ObjectKey
	// Hub and Data are the kubeconfig and the files in its hub kubeconfig Secret. The
	// kubeconfig refers to no file.
	Hub  kubeconfig.Hub
	Data Data
}

// HubSettings are a ClusterManager's settings for one driver.
type HubSettings struct {
	// Driver is the driver's entry in spec.registrationConfiguration.registrationDrivers.
	Driver operatorv1.RegistrationDriverHub
	// Annotations of the ClusterManager have the settings for which the entry has no
	// field. A driver ignores those that are not its own.
	Annotations map[string]string
}

// Runtime is the configuration that a component needs to run with a driver.
type Runtime struct {
	// Args are flags.
	Args []string
	// Account contains annotations of its ServiceAccount that give its pods an identity
	// of a cloud provider. Its pods have them as well.
	Account map[string]string
	// System are the permissions that it needs in the namespace kube-system. The operator
	// holds them as well, to grant them, and in every namespace: each names its objects.
	System []rbacv1.PolicyRule
}

// Grants describes a driver's grants to clusters outside the API of the hub. It is the
// zero value for a driver without such grants.
type Grants struct {
	// Kind names the granted objects, in the plural.
	Kind string
	// HubFlag is the flag of the registration controller that identifies the hub to the
	// granting service, and HubOf its value. A hub with another value does not find
	// existing grants.
	HubFlag string
	HubOf   func(HubSettings) string
}

// Hub is who a hub with these settings is where the driver grants; empty if they do not say,
// or it grants nothing.
func (g Grants) Hub(settings HubSettings) string {
	if g.HubOf == nil {
		return ""
	}
	return g.HubOf(settings)
}
