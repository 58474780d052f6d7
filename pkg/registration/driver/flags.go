package driver

import (
	"context"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// Annotations of flags that a driver defines, for commands.
const (
	// FlagAlias is another name of the flag, which commands take and do not show.
	FlagAlias = "alias"
	// FlagChoices are the values of the flag that a shell completes.
	FlagChoices = "choices"
)

// InitFlags are the flags of one driver at init.
type InitFlags interface {
	AddTo(flags *pflag.FlagSet)
	// Complete takes what no flag gives from the name of the cluster entry in the
	// kubeconfig, which is empty if the connection is not that of the entry.
	Complete(entry string)
	// Missing are questions about what is still missing.
	Missing() []Question
	// Settings returns what the flags say, and everything that is wrong with them.
	Settings(facts InitFacts) (HubSettings, error)
}

// InitFacts is what init knows in addition to the flags of a driver.
type InitFacts struct {
	// Entry is described at InitFlags.Complete.
	Entry string
	// AutoApproval is whether the hub may accept clusters without a person.
	AutoApproval bool
}

// JoinFlags are the flags of one driver at join.
type JoinFlags interface {
	AddTo(flags *pflag.FlagSet)
	// Complete is described at InitFlags, for the managed cluster.
	Complete(entry string)
	// Missing are questions about what is still missing.
	Missing() []Question
	// Settings returns what the flags say, and everything that is wrong with them.
	Settings() (operatorv1.RegistrationDriver, error)
}

// AcceptFlags are the flags of one driver at accept.
type AcceptFlags interface {
	AddTo(flags *pflag.FlagSet)
	// Acceptance returns what the flags say, and everything that is wrong with them.
	// chosen is the driver that the cluster is to register by, empty for the one that it has.
	Acceptance(chosen AuthType) (Acceptance, error)
}

// HubFlags are the flags of one driver at the hub's registration controller.
type HubFlags interface {
	AddTo(flags *pflag.FlagSet)
	// Driver returns the driver that the flags configure, and what it needs in the process;
	// nil if that is nothing. The errors begin with the flags that they are about.
	Driver() (Hub, func(context.Context, ctrl.Manager) error, error)
}

// AgentFlags are the flags of one driver at the agent.
type AgentFlags interface {
	AddTo(flags *pflag.FlagSet)
	// Driver returns what makes the driver that the flags configure. The errors begin with
	// the flags that they are about.
	Driver() (func(Identity) Agent, error)
}

// Acceptance is the administrator's input about a cluster that a driver identifies.
type Acceptance struct {
	// ID is the identity that the cluster is to have; empty for the one that its
	// ManagedCluster names.
	ID string
	// Hub identifies the hub where its settings do not.
	Hub HubSettings
	// Own says that the user's credentials are to be used where the driver grants.
	Own bool
}

// Question is about a value that no flag gave.
type Question struct {
	// Flag would have given it.
	Flag, Text string
	// Answer receives the answer.
	Answer *string
}
