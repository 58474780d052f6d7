package aws

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/caller"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/ststoken"
)

// tokenTimeout bounds the wait for AWS. The client that runs the plugin waits for
// it without a bound of its own.
const tokenTimeout = 30 * time.Second

func newGetToken(env cli.Env) *cobra.Command {
	source, timeout := ststoken.Config{Clock: env.Clock, Session: "kubectl-ocm"}, cli.Timeout(tokenTimeout)
	cmd := &cobra.Command{
		Use:   "get-token --cluster-name NAME --region REGION",
		Short: "Print a token for an EKS cluster (used by kubeconfigs)",
		Long: `Print a token for an EKS cluster, as a credential plugin of a kubeconfig does.
The hub kubeconfig of a cluster that registered with awsirsa runs this command.
It needs no AWS command line: the identity is the one that the AWS SDK finds.`,
		Example: fmt.Sprintf(`  # Print a token for the hub with the role that it made for a cluster
  %[1]s aws get-token --cluster-name hub --region us-west-2 \
      --role-arn arn:aws:iam::111111111111:role/ocm-hub-EXAMPLE`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := timeout.Context(cmd.Context())
			defer cancel()
			return printToken(ctx, env, source)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&source.Cluster, "cluster-name", "", "Name of the EKS cluster")
	flags.StringVar(&source.Region, "region", "", "AWS region of the EKS cluster")
	flags.StringVar(&source.Role, "role-arn", "", "ARN of the IAM role to assume first; empty for none")
	timeout.AddTo(cmd)
	return cmd
}

func printToken(ctx context.Context, env cli.Env, config ststoken.Config) error {
	if config.Cluster == "" || config.Region == "" {
		return cli.Usagef("--cluster-name and --region are needed: which EKS cluster the token is for")
	}
	version, err := env.ExecCredentialVersion()
	if err != nil {
		return err
	}
	source, err := ststoken.New(ctx, config)
	if err != nil {
		return err
	}
	token, err := source.Token(ctx)
	if caller.Late(err) {
		return noToken(config)
	}
	if err != nil {
		return err
	}
	return env.PrintExecCredential(version, token.Value, token.Expires)
}

// noToken is the error when the time was over before there was a credential. Without
// a role to assume, the SDK may have looked for one elsewhere than in STS.
func noToken(config ststoken.Config) error {
	problem := "no AWS credential was found in time"
	if config.Role != "" {
		problem = "AWS did not answer in time: sts in " + config.Region + ", asked for a session of " + config.Role
	}
	return &cli.Explained{Problem: problem, Try: caller.MoreTime, Code: cli.CodeTimeout}
}
