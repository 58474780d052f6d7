//go:build linux

package controller

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// spokeAWSFlags are OCM's flags of the awsirsa driver.
type spokeAWSFlags struct {
	hub, managed string
	suffix       string
}

func (f *spokeAWSFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.hub, "hub-cluster-arn", "", "with awsirsa, ARN of the hub's EKS cluster")
	flags.StringVar(&f.managed, "managed-cluster-arn", "", "with awsirsa, ARN of this EKS cluster")
	flags.StringVar(&f.suffix, "managed-cluster-role-suffix", "", "with awsirsa, the identifier of both clusters in the names of their IAM roles; empty means to compute it")
}

// constructor returns what makes the driver.
func (f *spokeAWSFlags) constructor() (func(driver.Identity) driver.Agent, error) {
	hub, errHub := parseClusterARN("hub-cluster-arn", f.hub)
	managed, errManaged := parseClusterARN("managed-cluster-arn", f.managed)
	if err := errors.Join(errHub, errManaged); err != nil {
		return nil, err
	}
	pair, err := identity.NewPair(hub, managed)
	if err != nil {
		return nil, err
	}
	if f.suffix != "" && f.suffix != pair.Identifier() {
		return nil, fmt.Errorf("--managed-cluster-role-suffix: %q is not the identifier of these two clusters, which is %s: check both ARNs", f.suffix, pair.Identifier())
	}
	return func(id driver.Identity) driver.Agent {
		return awsirsa.NewAgent(awsirsa.AgentConfig{Identity: id, Pair: pair, Clock: clock.RealClock{}})
	}, nil
}

func parseClusterARN(flag, arn string) (awsarn.Cluster, error) {
	if arn == "" {
		return awsarn.Cluster{}, fmt.Errorf("--%s: the registration driver awsirsa needs it", flag)
	}
	cluster, err := awsarn.ParseCluster(arn)
	if err != nil {
		return awsarn.Cluster{}, fmt.Errorf("--%s: %w", flag, err)
	}
	return cluster, nil
}
