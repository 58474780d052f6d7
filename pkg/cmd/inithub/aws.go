package inithub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/eks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
)

const flagDrivers = "registration-auth"

// awsFlags are the flags about registration by AWS IAM.
type awsFlags struct {
	spec hubspec.Spec
	// set are those that were given.
	set []*pflag.Flag
}

func (f *awsFlags) addTo(cmd *cobra.Command) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&f.spec.Cluster, hubspec.FlagCluster, "",
		"ARN of the hub's EKS cluster, for awsirsa; the kubeconfig of \"aws eks update-kubeconfig\" has it (also --eks-hub-cluster-arn)")
	own.StringSliceVar(&f.spec.Approved, hubspec.FlagApproved, nil,
		"EKS clusters that are accepted without a person: regular expressions, each for a whole ARN")
	own.StringSliceVar(&f.spec.Tags, hubspec.FlagTags, nil, "tags, as key=value, of the roles and access entries that the hub creates in AWS")
	own.VarPF(cli.NewEnum(&f.spec.Mapping, nil, mappings()...), hubspec.FlagMapping, "",
		"how the roles of clusters are mapped to users of the hub; auto goes by the authenticationMode of the EKS cluster (default auto)")
	own.StringVar(&f.spec.Creator, hubspec.FlagCreator, "",
		"ARN of the hub controller's role, if its name is not the one that \"aws prerequisites hub\" prints")
	own.VarPF(cli.NewEnum(&f.spec.PodIdentity, nil, "true", "false"), hubspec.FlagPodIdentity, "",
		"If true, agents may use EKS Pod Identity").NoOptDefVal = "true"
	cmd.Flags().AddFlagSet(own)
	cli.AliasFlag(cmd, "eks-"+hubspec.FlagCluster, hubspec.FlagCluster)
	_ = cmd.RegisterFlagCompletionFunc(hubspec.FlagMapping, cobra.FixedCompletions(mappings(), cobra.ShellCompDirectiveNoFileComp))
	own.VisitAll(func(flag *pflag.Flag) { f.set = append(f.set, flag) })
}

func mappings() []string {
	return []string{string(awsirsa.MapAuto), string(awsirsa.MapAccessEntry), string(awsirsa.MapAWSAuth)}
}

// given names the flags that were given.
func (f *awsFlags) given() []string {
	var given []string
	for _, flag := range f.set {
		if flag.Changed {
			given = append(given, "--"+flag.Name)
		}
	}
	return given
}

// ask asks for the ARN of the hub's EKS cluster where it is needed and neither a
// flag nor the kubeconfig has it.
func (o *options) ask() error {
	d := &o.drivers
	if !slices.Contains(d.names, driver.AWSIRSA) || d.aws.spec.Cluster != "" {
		return nil
	}
	if cluster, ok := eks.CurrentCluster(o.env.Kube); ok {
		d.aws.spec.Cluster = cluster.String()
		return nil
	}
	if !o.env.Interactive() {
		return nil // It is reported with what else is wrong.
	}
	return o.env.Ask(cli.Question{Flag: hubspec.FlagCluster, Text: "ARN of the hub's EKS cluster:", Answer: &d.aws.spec.Cluster})
}

// awsSpec returns what the flags say about registration by AWS IAM; empty parts
// keep what is live.
func (d *driverFlags) awsSpec(kube *cli.Kube, gates *flags.Gates) (hubspec.Spec, error) {
	if !slices.Contains(d.names, driver.AWSIRSA) {
		if given := d.aws.given(); len(given) > 0 {
			return hubspec.Spec{}, fmt.Errorf("--%s=aws-irsa is missing, which this needs: %s", flagDrivers, strings.Join(given, ", "))
		}
		return hubspec.Spec{}, nil
	}
	spec := d.aws.spec
	errs := []error{spec.Validate(hubspec.FlagNames())}
	if len(spec.Approved) > 0 && !gates.Enabled("ManagedClusterAutoApproval") {
		errs = append(errs, fmt.Errorf("--%s needs --feature-gates=ManagedClusterAutoApproval=true", hubspec.FlagApproved))
	}
	if cluster, ok := eks.CurrentCluster(kube); ok && cluster.String() != spec.Cluster {
		errs = append(errs, fmt.Errorf("--%s: the kubeconfig leads to another EKS cluster, %s; choose the hub with --context", hubspec.FlagCluster, cluster))
	}
	return spec, errors.Join(errs...)
}
