package setup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

// FlagManaged is the flag that names the managed EKS cluster. The hub's is
// hubspec.FlagCluster.
const FlagManaged = "managed-cluster-arn"

// addHub defines the flag that names the hub's EKS cluster, with its other name.
func addHub(flags *pflag.FlagSet, into *string, usage string) {
	flags.StringVar(into, hubspec.FlagCluster, "", usage)
	_ = flags.SetAnnotation(hubspec.FlagCluster, driver.FlagAlias, []string{"eks-" + hubspec.FlagCluster})
}

// entryCluster returns the EKS cluster that a cluster entry of a kubeconfig names, as
// "aws eks update-kubeconfig" calls it, and false if the entry is called otherwise.
func entryCluster(entry string) (awsarn.Cluster, bool) {
	cluster, err := awsarn.ParseCluster(entry)
	return cluster, err == nil
}

// initFlags are the flags of init.
type initFlags struct{ spec hubspec.Spec }

// InitFlags implements driver.Setup.
func (Setup) InitFlags() driver.InitFlags { return &initFlags{} }

// AddTo implements driver.InitFlags.
func (f *initFlags) AddTo(flags *pflag.FlagSet) {
	addHub(flags, &f.spec.Cluster,
		"ARN of the hub's EKS cluster, for awsirsa; the kubeconfig of \"aws eks update-kubeconfig\" has it (also --eks-hub-cluster-arn)")
	flags.StringSliceVar(&f.spec.Approved, hubspec.FlagApproved, nil,
		"EKS clusters that are accepted without a person: regular expressions, each for a whole ARN")
	flags.StringSliceVar(&f.spec.Tags, hubspec.FlagTags, nil, "tags, as key=value, of the roles and access entries that the hub creates in AWS")
	flags.StringVar(&f.spec.Mapping, hubspec.FlagMapping, "",
		"how the roles of clusters are mapped to users of the hub; auto goes by the authenticationMode of the EKS cluster (default auto)")
	flags.StringVar(&f.spec.Creator, hubspec.FlagCreator, "",
		"ARN of the hub controller's role, if its name is not the one that \"aws prerequisites hub\" prints")
	flags.StringVar(&f.spec.PodIdentity, hubspec.FlagPodIdentity, "", "If true, agents may use EKS Pod Identity")
	flags.Lookup(hubspec.FlagPodIdentity).NoOptDefVal = "true"
	mappings := []string{string(awsirsa.MapAuto), string(awsirsa.MapAccessEntry), string(awsirsa.MapAWSAuth)}
	_ = flags.SetAnnotation(hubspec.FlagMapping, driver.FlagChoices, mappings)
	_ = flags.SetAnnotation(hubspec.FlagPodIdentity, driver.FlagChoices, []string{"true", "false"})
}

// Complete implements driver.InitFlags.
func (f *initFlags) Complete(entry string) {
	if cluster, ok := entryCluster(entry); ok && f.spec.Cluster == "" {
		f.spec.Cluster = cluster.String()
	}
}

// Missing implements driver.InitFlags.
func (f *initFlags) Missing() []driver.Question {
	if f.spec.Cluster != "" {
		return nil
	}
	return []driver.Question{{Flag: hubspec.FlagCluster, Text: "ARN of the hub's EKS cluster:", Answer: &f.spec.Cluster}}
}

// Settings implements driver.InitFlags.
func (f *initFlags) Settings(facts driver.InitFacts) (driver.HubSettings, error) {
	errs := []error{f.spec.Validate(hubspec.FlagNames())}
	if len(f.spec.Approved) > 0 && !facts.AutoApproval {
		errs = append(errs, fmt.Errorf("--%s needs --feature-gates=ManagedClusterAutoApproval=true", hubspec.FlagApproved))
	}
	if cluster, ok := entryCluster(facts.Entry); ok && cluster.String() != f.spec.Cluster {
		errs = append(errs, fmt.Errorf("--%s: the kubeconfig leads to another EKS cluster, %s; choose the hub with --context", hubspec.FlagCluster, cluster))
	}
	return driver.HubSettings{Driver: f.spec.Driver(), Annotations: f.spec.Annotations()}, errors.Join(errs...)
}

// joinFlags are the flags of join.
type joinFlags struct{ hub, managed string }

// JoinFlags implements driver.Setup.
func (Setup) JoinFlags() driver.JoinFlags { return &joinFlags{} }

// AddTo implements driver.JoinFlags.
func (f *joinFlags) AddTo(flags *pflag.FlagSet) {
	addHub(flags, &f.hub, "ARN of the hub's EKS cluster, for awsirsa")
	flags.StringVar(&f.managed, FlagManaged, "", "ARN of this EKS cluster, for awsirsa (default the one in the kubeconfig context)")
}

// Complete implements driver.JoinFlags.
func (f *joinFlags) Complete(entry string) {
	if cluster, ok := entryCluster(entry); ok && f.managed == "" {
		f.managed = cluster.String()
	}
}

// Missing implements driver.JoinFlags.
func (f *joinFlags) Missing() []driver.Question {
	return slices.DeleteFunc([]driver.Question{
		{Flag: hubspec.FlagCluster, Text: "ARN of the hub's EKS cluster:", Answer: &f.hub},
		{Flag: FlagManaged, Text: "ARN of this EKS cluster:", Answer: &f.managed},
	}, func(q driver.Question) bool { return *q.Answer != "" })
}

// Settings implements driver.JoinFlags.
func (f *joinFlags) Settings() (operatorv1.RegistrationDriver, error) {
	pair, err := ParsePair(f.hub, f.managed)
	if err != nil {
		return operatorv1.RegistrationDriver{}, err
	}
	return operatorv1.RegistrationDriver{
		AuthType: string(identity.AuthType),
		AwsIrsa:  &operatorv1.AwsIrsa{HubClusterArn: pair.Hub.String(), ManagedClusterArn: pair.Managed.String()},
	}, nil
}

// ParsePair returns the EKS clusters that two flags name. The errors begin with the flags.
func ParsePair(hub, managed string) (identity.Pair, error) {
	parse := func(flag, arn string) (awsarn.Cluster, error) {
		if arn == "" {
			return awsarn.Cluster{}, fmt.Errorf("--%s: the registration driver awsirsa needs it", flag)
		}
		cluster, err := awsarn.ParseCluster(arn)
		if err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
		}
		return cluster, err
	}
	ofHub, errHub := parse(hubspec.FlagCluster, hub)
	ofManaged, errManaged := parse(FlagManaged, managed)
	if err := errors.Join(errHub, errManaged); err != nil {
		return identity.Pair{}, err
	}
	return identity.NewPair(ofHub, ofManaged)
}

// Whose AWS credentials grant and revoke identities.
const (
	ofHub = "hub"
	own   = "own"
)

const flagCredentials = "aws-credentials"

// acceptFlags are the flags of accept.
type acceptFlags struct{ hub, managed, credentials string }

// AcceptFlags implements driver.Setup.
func (Setup) AcceptFlags() driver.AcceptFlags { return &acceptFlags{} }

// AddTo implements driver.AcceptFlags.
func (f *acceptFlags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.managed, FlagManaged, "", "ARN of the managed EKS cluster, if its ManagedCluster does not name it")
	addHub(flags, &f.hub, "ARN of the hub's EKS cluster, if its ClusterManager does not name it")
	flags.StringVar(&f.credentials, flagCredentials, ofHub, "AWS credentials that create and delete the role of an EKS cluster. One of: "+strings.Join([]string{ofHub, own}, ", "))
	_ = flags.SetAnnotation(flagCredentials, driver.FlagChoices, []string{ofHub, own})
}

// Acceptance implements driver.AcceptFlags.
func (f *acceptFlags) Acceptance(chosen driver.AuthType) (driver.Acceptance, error) {
	if f.managed != "" && chosen != identity.AuthType {
		return driver.Acceptance{}, fmt.Errorf("--%s needs --registration-auth=%s", FlagManaged, identity.AuthType)
	}
	if f.credentials != ofHub && f.credentials != own {
		return driver.Acceptance{}, fmt.Errorf("--%s: %q must be one of %s, %s", flagCredentials, f.credentials, ofHub, own)
	}
	var errs []error
	for _, given := range [][2]string{{FlagManaged, f.managed}, {hubspec.FlagCluster, f.hub}} {
		if given[1] == "" {
			continue
		}
		if _, err := awsarn.ParseCluster(given[1]); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", given[0], err))
		}
	}
	return driver.Acceptance{
		ID: f.managed, Own: f.credentials == own,
		Hub: driver.HubSettings{Driver: hubspec.Spec{Cluster: f.hub}.Driver()},
	}, errors.Join(errs...)
}
