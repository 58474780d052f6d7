package setup

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

// hubFlags are the flags of the registration controller.
type hubFlags struct {
	spec        hubspec.Spec
	podIdentity bool
}

// HubFlags implements driver.HubSetup.
func (Setup) HubFlags() driver.HubFlags { return &hubFlags{} }

// AddTo implements driver.HubFlags.
func (f *hubFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.spec.Cluster, hubspec.FlagCluster, "", "ARN of the hub's EKS cluster, which the driver awsirsa needs")
	flags.StringSliceVar(&f.spec.Approved, hubspec.FlagApproved, nil,
		"regular expressions for ARNs of EKS clusters that are accepted while the gate ManagedClusterAutoApproval is on; each must match the whole ARN")
	flags.StringSliceVar(&f.spec.Tags, hubspec.FlagTags, nil, "tags for the roles and access entries that the hub creates, as key=value,...")
	flags.StringVar(&f.spec.Mapping, hubspec.FlagMapping, string(awsirsa.MapAuto),
		"how the roles of clusters are mapped to groups of the hub: access-entry, aws-auth, or auto for what the hub's authenticationMode has")
	flags.BoolVar(&f.podIdentity, hubspec.FlagPodIdentity, false,
		"If true, let agents assume their roles with sessions of EKS Pod Identity, which need sts:TagSession")
}

// Driver implements driver.HubFlags, without the network.
func (f *hubFlags) Driver() (driver.Hub, func(context.Context, ctrl.Manager) error, error) {
	spec := f.spec
	spec.PodIdentity = strconv.FormatBool(f.podIdentity)
	config, err := spec.Config(hubspec.FlagNames())
	if err != nil {
		return nil, nil, err
	}
	granter := awsirsa.NewHub(config)
	return granter, granter.SetupWithManager, nil
}

// agentFlags are the flags of the agent, which are OCM's.
type agentFlags struct{ hub, managed, suffix string }

// AgentFlags implements driver.AgentSetup.
func (Setup) AgentFlags() driver.AgentFlags { return &agentFlags{} }

// AddTo implements driver.AgentFlags.
func (f *agentFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.hub, hubspec.FlagCluster, "", "with awsirsa, ARN of the hub's EKS cluster")
	flags.StringVar(&f.managed, FlagManaged, "", "with awsirsa, ARN of this EKS cluster")
	flags.StringVar(&f.suffix, flagSuffix, "", "with awsirsa, the identifier of both clusters in the names of their IAM roles; empty means to compute it")
}

const flagSuffix = "managed-cluster-role-suffix"

// Driver implements driver.AgentFlags.
func (f *agentFlags) Driver() (func(driver.Identity) driver.Agent, error) {
	pair, err := ParsePair(f.hub, f.managed)
	if err != nil {
		return nil, err
	}
	if f.suffix != "" && f.suffix != pair.Identifier() {
		return nil, fmt.Errorf("--%s: %q is not the identifier of these two clusters, which is %s: check both ARNs", flagSuffix, f.suffix, pair.Identifier())
	}
	return func(id driver.Identity) driver.Agent {
		return awsirsa.NewAgent(awsirsa.AgentConfig{Identity: id, Pair: pair, Clock: clock.RealClock{}})
	}, nil
}
