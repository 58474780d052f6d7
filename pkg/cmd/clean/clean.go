// Package clean is the "clean" command: it removes a hub, the opposite of init.
package clean

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type options struct {
	changes *cli.Changes
	env     cli.Env
	wait    cli.Wait
	force   bool
	purge   bool
	yes     cli.Yes
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the hub from a cluster",
		Long: `Remove the hub from a cluster, the opposite of init. A hub that has clusters is
not removed; take them out with unjoin first.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "remove the hub although it has clusters")
	cmd.Flags().BoolVar(&o.purge, "purge-operator", true, "remove the operator as well")
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
	hub, err := runner.FindHub(ctx)
	if errors.Is(err, install.ErrNoHub) {
		return cli.NotFoundf("check that --context names the hub", "%v", err)
	}
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, runner, hub); err != nil {
		return err
	}
	removal := install.Removal{Force: o.force, Purge: o.purge}
	o.changes.Note(fleet.HubRef(names.ClusterManagerName), "deleted")
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.plan(ctx, runner, hub, removal)
	}
	if err := o.explain(runner.Clean(ctx, hub, removal)); err != nil {
		return err
	}
	text := "The multicluster hub control plane has been clean up successfully!"
	if o.env.Kube.DryRun() != cli.DryRunNone {
		text = "Nothing was removed" + o.env.Kube.DryRunSuffix() + "."
	}
	return o.changes.Print(text)
}

// confirm asks before the hub is removed, and says what goes with its clusters.
func (o *options) confirm(ctx context.Context, runner *install.Runner, hub install.InstalledHub) error {
	name, server := o.env.Kube.Target()
	question := fmt.Sprintf("Remove the hub of context %s (%s)?", name, server)
	if len(hub.Clusters) > 0 && o.force {
		works, err := fleet.CountWorks(ctx, runner.Client, "")
		if err != nil {
			return fmt.Errorf("ManifestWorks: %w", err)
		}
		question += fmt.Sprintf(" Its %d clusters and %s are lost.", len(hub.Clusters), works)
		if works != fleet.NoWorks {
			question += " Connected agents delete what the ManifestWorks deployed."
		}
	}
	return o.env.Confirm(o.yes, question)
}

// plan prints what would be removed.
func (o *options) plan(ctx context.Context, runner *install.Runner, hub install.InstalledHub, removal install.Removal) error {
	lines, err := runner.CleanPlan(ctx, hub, removal)
	if err != nil {
		return o.explain(err)
	}
	return o.changes.Plan(lines...)
}

// explain says what stands in the way.
func (o *options) explain(err error) error {
	var remain *install.ClustersRemainError
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
