package check

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func newWork(env cli.Env) *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "work NAME --cluster CLUSTER",
		Short: "Check one ManifestWork, on the hub",
		Long: `Check one ManifestWork, on the hub: whether it reached the agent, its executor
is allowed to apply the manifests, they are applied, and their resources are
available and ready.`,
		Example:           fmt.Sprintf(`  %[1]s check work app --cluster cluster1`, env.Name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: works.CompleteNames(env),
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "Name of the cluster")
	_ = cmd.RegisterFlagCompletionFunc("cluster", fleet.CompleteClusters(env))
	cmd.PreRunE = func(*cobra.Command, []string) error { return validateCluster(cluster) }
	return newCheck(env, cmd, func(ctx context.Context, s diagnose.Scope, args []string) (string, []finding.Step, error) {
		if err := works.Require(ctx, env, s.Client); err != nil {
			return "", nil, err
		}
		return "ManifestWork " + args[0] + " on " + cluster, work.Steps(s, cluster, args[0]), nil
	})
}

// validateCluster checks the flag --cluster.
func validateCluster(name string) error {
	if name == "" {
		return cli.Usagef("name the cluster with --cluster")
	}
	if err := names.ValidateClusterName(name); err != nil {
		return cli.Usagef("--cluster: %v", err)
	}
	return nil
}
