// Package clean is the "clean" command: it removes a hub, the opposite of init.
package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type options struct {
	changes *cli.Changes
	env     cli.Env
	wait    cli.Wait
	force   bool
	purge   bool
	// all purges what the hub leaves, too.
	all bool
	yes cli.Yes
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the hub from a cluster",
		Long: `Remove the hub from a cluster, the opposite of init. A hub that has clusters is
not removed; take them out with unjoin first.

The namespaces of clusters that left stay, as they can hold objects that the hub
did not create. The command lists what stays; --purge deletes it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "remove the hub although it has clusters")
	cmd.Flags().BoolVar(&o.purge, "purge-operator", true, "remove the operator as well")
	cmd.Flags().BoolVar(&o.all, "purge", false, "Delete also what otherwise stays: the namespaces of clusters, with all that is in them, and shared CRDs")
	cli.AddYesFlag(cmd.Flags(), &o.yes)
	o.wait.AddTo(cmd, "has no effect: the command always waits")
	cmd.Flags().Lookup("wait").Hidden = true
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	flags.AddCompat(cmd, map[string]string{"name": "a cluster has one hub"},
		map[string]string{"output-file": "use --dry-run=server to see whether it is possible"})
	return cmd
}

func (o *options) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return err
	}
	installed, err := hub.Runner{Runner: runner}.Find(ctx)
	if errors.Is(err, hub.ErrNoHub) {
		if remains, listErr := runner.HubRemains(ctx, ""); listErr == nil && o.all && len(remains) > 0 {
			return o.late(ctx, runner)
		}
		return cli.NotFoundf("check that --context names the hub", "%v", err)
	}
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, runner, installed); err != nil {
		return err
	}
	removal := install.Removal{Force: o.force, Purge: o.purge}
	o.changes.Note(fleet.HubRef(names.ClusterManagerName), "deleted")
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.plan(ctx, runner, installed, removal)
	}
	if err := o.explain(hub.Runner{Runner: runner}.Clean(ctx, installed, removal)); err != nil {
		return err
	}
	if err := o.remains(ctx, runner); err != nil {
		return err
	}
	text := "The multicluster hub control plane has been clean up successfully!"
	if o.env.Kube.DryRun() != cli.DryRunNone {
		text = "Nothing was removed" + o.env.Kube.DryRunSuffix() + "."
	}
	return o.changes.Print(text)
}

// late deletes what an earlier run left.
func (o *options) late(ctx context.Context, runner *install.Runner) error {
	name, server := o.env.Kube.Target()
	if err := o.env.Confirm(o.yes, fmt.Sprintf("The hub of context %s (%s) is removed already.%s", name, server, purged)); err != nil {
		return err
	}
	if o.env.Kube.DryRun() == cli.DryRunClient {
		lines, err := o.purgePlan(ctx, runner, nil)
		if err != nil {
			return err
		}
		return o.changes.Plan(lines...)
	}
	return o.remains(ctx, runner)
}

// remains names what stays on the cluster, or deletes it.
func (o *options) remains(ctx context.Context, runner *install.Runner) error {
	if o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	remains, err := runner.HubRemains(ctx, "")
	if err != nil {
		return err
	}
	if o.all {
		return o.explain(runner.Purge(ctx, remains))
	}
	fleet.SayRemains(o.env, runner, remains)
	return nil
}

// confirm asks before the hub is removed, and says what goes with its clusters.
func (o *options) confirm(ctx context.Context, runner *install.Runner, installed hub.Installed) error {
	name, server := o.env.Kube.Target()
	question := fmt.Sprintf("Remove the hub of context %s (%s)?", name, server)
	if len(installed.Clusters) > 0 && o.force {
		works, err := fleet.CountWorks(ctx, runner.Client, "")
		if err != nil {
			return fmt.Errorf("ManifestWorks: %w", err)
		}
		question += fmt.Sprintf(" Its %d clusters and %s are lost.", len(installed.Clusters), works)
		if works != fleet.NoWorks {
			question += " Connected agents delete what the ManifestWorks deployed."
		}
	}
	if o.all {
		question += purged
	}
	return o.env.Confirm(o.yes, question)
}

// plan prints what would be removed.
func (o *options) plan(ctx context.Context, runner *install.Runner, installed hub.Installed, removal install.Removal) error {
	lines, err := hub.Runner{Runner: runner}.CleanPlan(ctx, installed, removal)
	if err != nil {
		return o.explain(err)
	}
	if o.all {
		if lines, err = o.purgePlan(ctx, runner, lines); err != nil {
			return err
		}
	}
	return o.changes.Plan(lines...)
}

// purged says what --purge deletes besides.
const purged = " The namespaces of its clusters are deleted with all that is in them, and shared CRDs with their objects."

// purgePlan adds what --purge deletes to a plan.
func (o *options) purgePlan(ctx context.Context, runner *install.Runner, lines []string) ([]string, error) {
	remains, err := runner.HubRemains(ctx, "")
	for _, remain := range remains {
		if line := runner.Describe(remain.Object); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// explain says what stands in the way.
func (o *options) explain(err error) error {
	var remain *hub.ClustersRemainError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &remain):
		return cli.Blockedf(o.env.Command("unjoin CLUSTER --side=hub")+" for each, or --force", "Please detach all managed clusters from the hub control plane: %v", remain)
	}
	waiting := "the hub to be removed"
	if why := install.Unblocked(err); why != "" {
		waiting += " (" + why + ")"
	}
	return o.wait.TimedOut(err, waiting, "look at what is named; a cluster without an agent goes with: "+o.env.Command("unjoin CLUSTER --side=hub --force"))
}
