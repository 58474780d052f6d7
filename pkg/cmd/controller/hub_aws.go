//go:build linux

package controller

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
)

// hubAWSFlags are the flags of the hub controller for the awsirsa driver.
type hubAWSFlags struct {
	spec        hubspec.Spec
	podIdentity bool
}

func (f *hubAWSFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.spec.Cluster, hubspec.FlagCluster, "", "ARN of the hub's EKS cluster, which the driver awsirsa needs")
	flags.StringSliceVar(&f.spec.Approved, hubspec.FlagApproved, nil,
		"regular expressions for ARNs of EKS clusters that are accepted while the gate ManagedClusterAutoApproval is on; each must match the whole ARN")
	flags.StringSliceVar(&f.spec.Tags, hubspec.FlagTags, nil, "tags for the roles and access entries that the hub creates, as key=value,...")
	flags.StringVar(&f.spec.Mapping, hubspec.FlagMapping, string(awsirsa.MapAuto),
		"how the roles of clusters are mapped to groups of the hub: access-entry, aws-auth, or auto for what the hub's authenticationMode has")
	flags.BoolVar(&f.podIdentity, hubspec.FlagPodIdentity, false,
		"If true, let agents assume their roles with sessions of EKS Pod Identity, which need sts:TagSession")
}

// driver returns the driver, without the network.
func (f *hubAWSFlags) driver() (hub.Driver, error) {
	spec := f.spec
	spec.PodIdentity = strconv.FormatBool(f.podIdentity)
	config, err := spec.Config(hubspec.FlagNames())
	if err != nil {
		return hub.Driver{}, err
	}
	granter := awsirsa.NewHub(config)
	return hub.Driver{Hub: granter, Setup: granter.SetupWithManager}, nil
}
