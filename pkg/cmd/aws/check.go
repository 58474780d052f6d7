package aws

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/caller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/cloud"
)

// checkTimeout bounds all calls of a check together.
const checkTimeout = 2 * time.Minute

func newCheck(env cli.Env) *cobra.Command {
	cmd := cli.Parent("check", "Compare what is in AWS with what registration by AWS IAM needs",
		newCheckSide(env, &hubFlags{}, hubSteps, &cobra.Command{
			Use:   "hub",
			Short: "Check the role of a hub's controller, and find orphaned roles",
			Long: `Check the IAM role that the registration controller of a hub assumes, and what
it needs in AWS. If the kubeconfig leads to the hub, the command also lists the
roles, access entries and lines of aws-auth that the hub made for clusters that
it does not accept any more, with the command that removes each. It removes
nothing itself.`,
			Example: `  ` + env.Name + ` aws check hub \
    --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub \
    --oidc-provider oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF`,
		}),
		newCheckSide(env, &managedFlags{}, managedSteps, &cobra.Command{
			Use:   "managed",
			Short: "Check the role of a managed cluster's agents",
			Long: `Check the IAM role that the agents of a managed cluster assume, and what it
needs in AWS. With credentials of the hub's account the command checks the role
and the access entry that the hub made for the cluster.`,
			Example: `  ` + env.Name + ` aws check managed \
    --hub-cluster-arn arn:aws:eks:eu-west-1:111111111111:cluster/hub \
    --managed-cluster-arn arn:aws:eks:eu-west-1:222222222222:cluster/managed-0 \
    --oidc-provider oidc.eks.eu-west-1.amazonaws.com/id/0123456789ABCDEF`,
		}))
	cmd.Long = `Compare what is in AWS with what "aws prerequisites" prints, with your own AWS
credentials, which are found as every AWS SDK finds them. The commands change
nothing.

A check for which you lack a permission is reported as unknown. The command ends
with 3 if a check failed or is unknown.`
	return cmd
}

// newCheckSide completes a command that checks a side.
func newCheckSide(env cli.Env, flags sideFlags, steps func(*inspection) []finding.Step, cmd *cobra.Command) *cobra.Command {
	timeout := cli.Timeout(checkTimeout)
	flags.addTo(cmd)
	timeout.AddTo(cmd)
	return checks.Complete(env, cmd, func(cmd *cobra.Command, _ []string) (checks.Report, error) {
		side, err := flags.wanted()
		if err != nil {
			return checks.Report{}, err
		}
		ctx, cancel := timeout.Context(cmd.Context())
		defer cancel()
		user, err := caller.New(ctx, env.Clock, side.cluster)
		if err != nil {
			return checks.Report{}, err
		}
		i := &inspection{
			env: env, wanted: side, caller: user,
			client: cloud.New(user.Config, side.cluster), hubClient: cloud.New(user.Config, side.hub),
			prerequisites: env.Elsewhere(append([]string{"aws prerequisites", cmd.Name()}, given(cmd)...)...) + " -o cli",
		}
		return checks.Run(ctx, side.cluster.String(), steps(i)).Folded(), nil
	})
}

// given are the flags of a side that were given.
func given(cmd *cobra.Command) []string {
	var args []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "output" && f.Name != "timeout" {
			args = append(args, "--"+f.Name+"="+cli.Quoted(f.Value.String()))
		}
	})
	return args
}
