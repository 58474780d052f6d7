package setup

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/awsarn"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/awsauth"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/caller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/hubspec"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

var _ driver.Identifier = Setup{}

// Words implements driver.Identifier.
func (Setup) Words() driver.Words {
	return driver.Words{
		Provider: "AWS", Identity: "AWS identity", Identities: "AWS identities",
		Clusters: "EKS clusters", Way: "AWS IAM", Place: "EKS", Hub: "the ARN of the hub's EKS cluster",
		IDFlag: FlagManaged, OwnFlag: "--" + flagCredentials + " " + own, Needs: "aws prerequisites hub",
	}
}

// Help implements driver.Identifier.
func (Setup) Help() driver.Help {
	return driver.Help{
		Accept: `An EKS cluster that registers with AWS has no key: the command prints its ARN,
its account and the IAM role that the hub will trust.

The hub controller creates and deletes the IAM role of such a cluster. If the
controller has no AWS role that allows it, --aws-credentials own uses your AWS
credentials, which are looked up as the AWS SDK does.`,
		AcceptExamples: `  # Change a cluster from client certificates to AWS
  %[1]s accept cluster1 --registration-auth awsirsa \
      --managed-cluster-arn arn:aws:eks:us-east-2:222222222222:cluster/cluster1

  # Accept it with your AWS credentials, if the hub controller has no role
  AWS_PROFILE=hub-admin %[1]s accept cluster1 --aws-credentials own`,
		InitExamples: `  # An EKS hub, whose clusters register by AWS IAM
  %[1]s init --wait --registration-auth aws-irsa \
      --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub`,
	}
}

// Short implements driver.Identifier: the account, the region and the name.
func (Setup) Short(id string) string {
	arn, err := awsarn.ParseCluster(id)
	if err != nil {
		return id
	}
	return arn.Account + "/" + arn.Region + "/" + arn.Name
}

// Annotations implements driver.Identifier.
func (Setup) Annotations() []string { return identity.Annotations() }

// AnnouncedID implements driver.Identifier: the ARN of the EKS cluster.
func (Setup) AnnouncedID(cluster *clusterv1.ManagedCluster) (string, error) {
	arn, _, err := awsirsa.AnnouncedARN(cluster)
	return arn, err
}

// Identify implements driver.Identifier.
func (Setup) Identify(cluster *clusterv1.ManagedCluster, hub driver.HubSettings) (*driver.Identified, error) {
	own, err := hubOf(hub)
	if err != nil {
		return nil, err
	}
	pair, err := awsirsa.NewHub(awsirsa.HubConfig{Cluster: own}).Announced(cluster)
	if pair == nil || err != nil {
		return nil, err
	}
	return &driver.Identified{ID: pair.Managed.String(), Key: pair.Identifier(), Trusted: []string{
		"EKS cluster " + pair.Managed.String(),
		"AWS account " + pair.Managed.Account,
		// The name of a role fits on a line next to the account, its ARN does not.
		"trusted role " + pair.ManagedRole().Name,
		"hub role " + pair.HubRole().Name,
	}}, nil
}

// hubOf is the EKS cluster of a hub.
func hubOf(settings driver.HubSettings) (awsarn.Cluster, error) {
	cluster, err := awsarn.ParseCluster(hubspec.From(settings).Cluster)
	if err != nil {
		return cluster, fmt.Errorf("the ARN of the hub: %w", err)
	}
	return cluster, nil
}

// Announce implements driver.Identifier.
func (Setup) Announce(cluster *clusterv1.ManagedCluster, id string, hub driver.HubSettings) error {
	own, err := hubOf(hub)
	if err != nil {
		return err
	}
	managed, err := awsarn.ParseCluster(id)
	if err != nil {
		return fmt.Errorf("--%s: %w", FlagManaged, err)
	}
	pair, err := identity.NewPair(own, managed)
	if err == nil {
		awsirsa.NewAgent(awsirsa.AgentConfig{Pair: pair}).Decorate(cluster)
	}
	return err
}

// Recorded implements driver.Identifier: the ARN of the role in the hub's account.
func (Setup) Recorded(grant driver.Grant) (string, error) {
	role, err := awsirsa.GrantedRole(grant)
	return role.String(), err
}

// ID implements driver.Identifier.
func (Setup) ID(settings operatorv1.RegistrationDriver) string {
	pair, err := identity.PairOf(settings)
	if err != nil {
		return ""
	}
	return pair.Managed.String()
}

// Hub implements driver.Identifier.
func (s Setup) Hub(settings operatorv1.RegistrationDriver) driver.HubSettings {
	return driver.HubSettings{Driver: hubspec.Spec{Cluster: s.HubID(settings)}.Driver()}
}

// InitArgs implements driver.Identifier.
func (Setup) InitArgs(hub driver.HubSettings) []string {
	return []string{"--registration-auth", identity.Alias, "--" + hubspec.FlagCluster, cmp.Or(hubspec.From(hub).Cluster, "ARN")}
}

// Prepare implements driver.Identifier.
func (Setup) Prepare(hub driver.HubSettings) (need string, args []string) {
	spec := hubspec.From(hub)
	args = []string{"aws", "prerequisites", "hub", "--" + hubspec.FlagCluster, spec.Cluster, "--oidc-provider", "ISSUER"}
	if spec.Creator != "" {
		args = append(args, "--"+hubspec.FlagCreator, spec.Creator)
	}
	return "The hub needs an IAM role before it can accept EKS clusters.", args
}

// JoinArgs implements driver.Identifier.
func (Setup) JoinArgs(hub driver.HubSettings) []string {
	return []string{"--registration-auth", identity.Alias, "--eks-" + hubspec.FlagCluster, hubspec.From(hub).Cluster}
}

// OwnGranter implements driver.Identifier. The credentials are found as every AWS SDK finds
// them, and must be of the hub's account.
func (Setup) OwnGranter(ctx context.Context, hub driver.HubSettings, c client.Client, clock clock.PassiveClock) (driver.Granter, string, error) {
	config, err := hubspec.From(hub).Config(hubspec.FieldNames())
	if err != nil {
		return nil, "", err
	}
	user, err := caller.New(ctx, clock, config.Cluster)
	if err != nil {
		return nil, "", err
	}
	if err := user.Identify(ctx, config.Cluster.Account); err != nil {
		return nil, "", err
	}
	granter := awsirsa.NewHub(config)
	granter.Connect(user.Config, awsauth.Store{Live: c, Client: c})
	return granter, user.ARN, nil
}
