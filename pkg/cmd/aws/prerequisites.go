package aws

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/identity"
)

func newPrerequisites(env cli.Env) *cobra.Command {
	cmd := cli.Parent("prerequisites", "Print the IAM roles that registration by AWS IAM needs",
		newPrint(env, &hubFlags{}, &cobra.Command{
			Use:   "hub",
			Short: "Print the role of a hub's registration controller",
			Long: `Print the IAM role that the registration controller of a hub assumes to make a
role and an access entry for each managed cluster that the hub accepts. It
belongs to the hub's account.`,
			Example: `  # A CloudFormation template
  ` + env.Name + ` aws prerequisites hub \
    --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub \
    --oidc-provider oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF \
    -o cloudformation`,
		}),
		newPrint(env, &managedFlags{}, &cobra.Command{
			Use:   "managed",
			Short: "Print the role of a managed cluster's agents",
			Long: `Print the IAM role that the agents of a managed cluster assume. It belongs to
the managed cluster's account. Its name and tags follow from the two clusters,
and the hub trusts no other one.`,
			Example: `  # An overview of the role, for agents that use an OIDC provider
  ` + env.Name + ` aws prerequisites managed \
    --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub \
    --managed-cluster-arn arn:aws:eks:eu-west-1:222222222222:cluster/managed-0 \
    --oidc-provider oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF

  # The same for EKS Pod Identity, as commands of the AWS CLI
  ` + env.Name + ` aws prerequisites managed \
    --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub \
    --managed-cluster-arn arn:aws:eks:eu-west-1:222222222222:cluster/managed-0 \
    --pod-identity -o cli`,
		}))
	cmd.Long = `Print the IAM roles that registration by AWS IAM needs, with their trust
policies, access policies and tags, before anything runs. No cluster and no AWS
account is contacted.

  -o table           names, accounts, purposes and tags
  -o json, yaml      the roles, with their policies
  -o cloudformation  a template; create its stack with CAPABILITY_NAMED_IAM
  -o terraform       a configuration in JSON syntax, for a file named *.tf.json
  -o cli             commands of the AWS CLI, for a POSIX shell`
	return cmd
}

// newPrint completes a command that prints the role of a side.
func newPrint(env cli.Env, flags sideFlags, cmd *cobra.Command) *cobra.Command {
	out := newOutput()
	cmd.RunE = func(*cobra.Command, []string) error {
		side, err := flags.wanted()
		if err != nil {
			return err
		}
		return write(env.Out, out, []identity.Role{side.role})
	}
	flags.addTo(cmd)
	out.AddTo(cmd)
	return cmd
}
