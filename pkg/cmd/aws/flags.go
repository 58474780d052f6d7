package aws

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
)

const flagIssuer = "oidc-provider"

// wanted is a cluster's side of a registration, as it has to be.
type wanted struct {
	// cluster is the EKS cluster whose pods assume role, hub the hub.
	cluster, hub awsarn.Cluster
	role         identity.Role
	source       identity.Source
	// pair is both clusters; nil on a hub, whose role is for all of them.
	pair *identity.Pair
}

// sideFlags name the clusters and say what the role of one of them has to be like.
type sideFlags interface {
	addTo(cmd *cobra.Command)
	wanted() (wanted, error)
}

// commonFlags are those of both sides: the hub, and how pods of the side's cluster
// get the credentials of a role.
type commonFlags struct {
	hub         string
	issuer      string
	podIdentity bool
}

func (f *commonFlags) addTo(cmd *cobra.Command, cluster string) {
	set := cmd.Flags()
	set.StringVar(&f.hub, hubspec.FlagCluster, "", "ARN of the hub's EKS cluster")
	set.StringVar(&f.issuer, flagIssuer, "", "OIDC issuer of the "+cluster+", with or without https://")
	set.BoolVar(&f.podIdentity, "pod-identity", false, "If true, pods get their credentials from EKS Pod Identity, without an OIDC provider")
	cli.AliasFlag(cmd, "eks-"+hubspec.FlagCluster, hubspec.FlagCluster)
	cli.AliasFlag(cmd, "oidc-issuer", flagIssuer)
}

// source returns how pods get credentials; cluster is whose issuer is asked for.
func (f *commonFlags) source(cluster awsarn.Cluster) (identity.Source, error) {
	switch {
	case f.podIdentity && f.issuer != "":
		return identity.Source{}, cli.Usagef("--%s and --pod-identity exclude each other", flagIssuer)
	case f.podIdentity:
		return identity.Source{}, nil
	case f.issuer == "":
		return identity.Source{}, &cli.Explained{
			Problem: "--" + flagIssuer + " is missing",
			Try: "print it with: aws eks describe-cluster --region " + cluster.Region + " --name " + cluster.Name +
				" --query cluster.identity.oidc.issuer --output text; or use --pod-identity",
			Code: cli.CodeUsage,
		}
	}
	issuer, err := awsarn.ParseIssuer(f.issuer)
	if err != nil {
		return identity.Source{}, cli.Usagef("--%s: %v", flagIssuer, err)
	}
	return identity.Source{Issuer: issuer}, nil
}

// hubFlags are about a hub and the role of its registration controller.
type hubFlags struct {
	commonFlags

	role string
}

func (f *hubFlags) addTo(cmd *cobra.Command) {
	f.commonFlags.addTo(cmd, "hub")
	cmd.Flags().StringVar(&f.role, identity.CreatorRoleFlag, "", "ARN of the role, where its name must differ from the default")
	cli.AliasFlag(cmd, "role-arn", identity.CreatorRoleFlag)
}

func (f *hubFlags) wanted() (wanted, error) {
	if f.hub == "" {
		return wanted{}, cli.Usagef("--%s is missing", hubspec.FlagCluster)
	}
	hub, err := awsarn.ParseCluster(f.hub)
	if err != nil {
		return wanted{}, cli.Usagef("--%s: %v", hubspec.FlagCluster, err)
	}
	role, err := f.creator(hub)
	if err != nil {
		return wanted{}, err
	}
	source, err := f.source(hub)
	return wanted{cluster: hub, hub: hub, role: identity.Creator(hub, role, source), source: source}, err
}

// creator returns the role that was named, or the default one.
func (f *hubFlags) creator(hub awsarn.Cluster) (awsarn.Role, error) {
	if f.role == "" {
		role, err := identity.CreatorRole(hub)
		if long, ok := errors.AsType[*identity.NameTooLongError](err); ok {
			return role, &cli.Explained{Problem: long.Error(), Try: long.Hint(), Code: cli.CodeUsage}
		}
		return role, err
	}
	role, err := awsarn.ParseRole(f.role)
	if err == nil {
		err = identity.CheckOwner(role, hub)
	}
	if err != nil {
		return role, cli.Usagef("--%s: %v", identity.CreatorRoleFlag, err)
	}
	return role, nil
}

// managedFlags are about a managed cluster and the role of its agents.
type managedFlags struct {
	commonFlags

	managed    string
	klusterlet string
	namespace  string
	singleton  bool
}

func (f *managedFlags) addTo(cmd *cobra.Command) {
	f.commonFlags.addTo(cmd, "managed cluster")
	set := cmd.Flags()
	set.StringVar(&f.managed, setup.FlagManaged, "", "ARN of the managed EKS cluster")
	set.StringVar(&f.klusterlet, "klusterlet-name", names.KlusterletName, "Name of the Klusterlet")
	set.StringVar(&f.namespace, "klusterlet-namespace", names.AgentNamespace, "Namespace of the agents")
	set.BoolVar(&f.singleton, "singleton", false, "If true, the Klusterlet is installed in the mode Singleton, with one ServiceAccount")
}

func (f *managedFlags) wanted() (wanted, error) {
	pair, err := setup.ParsePair(f.hub, f.managed)
	if err != nil {
		return wanted{}, cli.Usagef("%v", err)
	}
	source, err := f.source(pair.Managed)
	if err != nil {
		return wanted{}, err
	}
	accounts, err := f.accounts()
	return wanted{
		cluster: pair.Managed, hub: pair.Hub, pair: &pair, role: pair.RoleOfAgents(source, accounts), source: source,
	}, err
}

// accounts are the ServiceAccounts of the agents.
func (f *managedFlags) accounts() (identity.Accounts, error) {
	if problems := validation.IsDNS1123Subdomain(f.klusterlet); len(problems) > 0 {
		return identity.Accounts{}, cli.Usagef("--klusterlet-name: %q: %s", f.klusterlet, problems[0])
	}
	if problems := validation.IsDNS1123Label(f.namespace); len(problems) > 0 {
		return identity.Accounts{}, cli.Usagef("--klusterlet-namespace: %q: %s", f.namespace, problems[0])
	}
	if f.singleton {
		return identity.SingletonAccounts(f.namespace, f.klusterlet), nil
	}
	return identity.AgentAccounts(f.namespace, f.klusterlet), nil
}
