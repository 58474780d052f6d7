package check

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/checks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("check", "Diagnose hubs, clusters, add-ons, ManifestWorks and tokens",
		newHub(env), newAgent(env), newCluster(env), newWork(env), newTokens(env))
}

// newCheck completes a command that makes checks; steps returns them, and what they are about.
func newCheck(env cli.Env, cmd *cobra.Command, steps func(ctx context.Context, s diagnose.Scope, args []string) (about string, steps []finding.Step, err error)) *cobra.Command {
	return checks.Complete(env, cmd, func(cmd *cobra.Command, args []string) (checks.Report, error) {
		c, config, err := env.Kube.Connect()
		if err != nil {
			return checks.Report{}, err
		}
		scope := diagnose.Scope{Commands: env, Client: c, Config: config, Clock: env.Clock, Drivers: env.Drivers, Warn: env.Warn}
		about, list, err := steps(cmd.Context(), scope, args)
		if err != nil {
			return checks.Report{}, err
		}
		return checks.Run(cmd.Context(), about, list), nil
	})
}

// addMaxLifetime registers --max-lifetime.
func addMaxLifetime(cmd *cobra.Command, limit *diagnose.Limit) {
	cmd.Flags().DurationVar((*time.Duration)(limit), "max-lifetime", time.Duration(diagnose.DefaultLimit), "name credentials with a longer lifetime; 0 names none")
}

func newHub(env cli.Env) *cobra.Command {
	var (
		selfTest bool
		limit    diagnose.Limit
	)
	cmd := &cobra.Command{Use: "hub", Short: "Check a hub"}
	cmd.Flags().BoolVar(&selfTest, "self-test", true, "ask the hub for a worthless certificate and delete the request again")
	addMaxLifetime(cmd, &limit)
	return newCheck(env, cmd, func(_ context.Context, s diagnose.Scope, _ []string) (string, []finding.Step, error) {
		skipped := ""
		if !selfTest {
			skipped = "--self-test=false"
		}
		return "hub " + s.Config.Host, hub.Steps(s, limit, skipped), nil
	})
}

func newAgent(env cli.Env) *cobra.Command {
	var limit diagnose.Limit
	cmd := &cobra.Command{
		Use:     "agent",
		Aliases: []string{"klusterlet"},
		Short:   "Check a managed cluster, on the managed cluster",
	}
	cli.OldName(cmd, "spoke")
	addMaxLifetime(cmd, &limit)
	return newCheck(env, cmd, func(_ context.Context, s diagnose.Scope, _ []string) (string, []finding.Step, error) {
		return "managed cluster " + s.Config.Host, agent.Steps(s, limit), nil
	})
}

func newCluster(env cli.Env) *cobra.Command {
	var limit diagnose.Limit
	cmd := &cobra.Command{
		Use:               "cluster NAME",
		Short:             "Check one managed cluster, on the hub",
		Args:              cobra.MatchAll(cobra.ExactArgs(1), validateName),
		ValidArgsFunction: fleet.CompleteClusters(env),
	}
	addMaxLifetime(cmd, &limit)
	return newCheck(env, cmd, func(ctx context.Context, s diagnose.Scope, args []string) (string, []finding.Step, error) {
		if err := fleet.RequireHub(ctx, env, s.Client); err != nil {
			return "", nil, err
		}
		return "cluster " + args[0], cluster.Steps(ctx, s, args[0], limit, fleet.NearCluster), nil
	})
}

// validateName validates the cluster name argument.
func validateName(_ *cobra.Command, args []string) error { return names.ValidateClusterName(args[0]) }
