package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

type publishOptions struct {
	env     cli.Env
	changes *cli.Changes
	wait    cli.Wait
	agent   fleet.AgentFlags
	off     bool
}

func newPublish(env cli.Env) *cobra.Command {
	o := &publishOptions{env: env, changes: cli.NewChanges(env), wait: cli.Wait{Enabled: true}}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Publish the cluster's token issuer, on the managed cluster",
		Long: `Have the agent of a managed cluster show the hub the issuer and the public keys
of the cluster's tokens, and keep them up to date. Run it with the context of
the managed cluster.

The agent publishes only keys that verify a token which the cluster just made.
With --off it takes back what it published: the hub then trusts no token of
this cluster whose keys are not in the token authorizer's configuration.`,
		Example: fmt.Sprintf(`  # On, and wait until the hub has the keys
  %[1]s issuer publish --context cluster1

  # Off
  %[1]s issuer publish --context cluster1 --off`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	cmd.Flags().BoolVar(&o.off, "off", false, "stop, and take back what was published")
	o.agent.AddTo(cmd)
	o.wait.AddTo(cmd, "wait until the hub holds the keys, or none with --off")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *publishOptions) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, installed, err := o.agent.Find(ctx, o.env)
	if err != nil {
		return err
	}
	if err := o.change(ctx, runner, installed); err != nil {
		return err
	}
	if !o.wait.Enabled || o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	return o.await(ctx, runner, installed)
}

func (o *publishOptions) change(ctx context.Context, runner agent.Runner, installed agent.Installed) error {
	publishes, said := installed.PublishesIssuer()
	if (publishes && !o.off) || (o.off && said && !publishes) {
		return fleet.AddUnchanged(o.changes, installed)
	}
	return fleet.AddConfigured(o.changes, installed, runner.SetPublishIssuer(ctx, installed, !o.off))
}

func (o *publishOptions) await(ctx context.Context, runner agent.Runner, installed agent.Installed) error {
	flag := "--publish-issuer"
	if o.off {
		flag += "=" + strconv.FormatBool(false)
	}
	missing := func(args []string) string {
		if slices.Contains(args, flag) {
			return ""
		}
		return fleet.AgentOutdated
	}
	err := runner.AwaitFlags(ctx, installed, missing)
	switch {
	case err != nil:
	case o.off:
		err = runner.AwaitIssuerWithdrawn(ctx, installed)
	default:
		err = runner.AwaitIssuerPublished(ctx, installed)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		waiting := "the agent"
		if unmet := install.Unmet(err); unmet != "" {
			waiting += " (" + strings.TrimSpace(unmet) + ")"
		}
		return o.wait.TimedOut(err, waiting, "see what is wrong with: "+o.env.Command("check agent"))
	}
	return err
}
