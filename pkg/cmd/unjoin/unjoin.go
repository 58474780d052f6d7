package unjoin

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

// side is where the command works.
type side string

const (
	both    side = "both"
	hub     side = "hub"
	managed side = "managed"
)

type options struct {
	changes *cli.Changes
	env     cli.Env
	wait    cli.Wait
	cluster string
	side    side
	admin   cli.Context
	force   bool
	purge   bool
	// all deletes also what otherwise stays.
	all   bool
	works install.Fate
	// left says that the hub knows that the cluster has left.
	left bool
	yes  cli.Yes
}

// New returns the command.
func New(env cli.Env) *cobra.Command {
	o := &options{env: env, changes: cli.NewChanges(env), side: both}
	cmd := &cobra.Command{
		Use:   "unjoin [CLUSTER]",
		Short: "Detach a cluster from the hub",
		Long: `Take a cluster out of the fleet. Run it with the context of the managed cluster.

It withdraws the hub's acceptance with the credential that the cluster holds, so
that the hub takes back what it granted, and then removes the agent and its
operator. With --hub-context the cluster is deleted on the hub as well. A
cluster that no longer exists is removed with --side=hub on the hub.

While ManifestWorks own resources on the cluster, nothing is removed until you
say what becomes of them: --works=delete deletes them with the agent, and
--works=orphan keeps them, owned by no ManifestWork. The command lists them
before it asks. A run that was interrupted is completed by the next one.

Some objects stay: the namespace of the cluster on the hub, as it can hold
objects that the hub did not create, and two CRDs on the managed cluster. The
command lists what stays; --purge deletes it.

It ends with 0 when all is removed, 3 when something is in the way, 4 when there
is no such cluster, and 124 when the time was over.`,
		Example: fmt.Sprintf(`  # On the managed cluster
  %[1]s unjoin cluster1

  # See the ManifestWorks and what they own, and keep it
  %[1]s unjoin cluster1 --works orphan --dry-run
  %[1]s unjoin cluster1 --works orphan

  # Both sides, with both contexts at hand
  %[1]s unjoin cluster1 --context cluster1 --hub-context hub --wait

  # On the hub, for a cluster that does not exist any more
  %[1]s unjoin cluster1 --side=hub --force --wait`, env.Name),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.changes.End(o.run(cmd.Context()))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.cluster, "cluster-name", "", "name of the cluster on the hub")
	cli.NewEnum(&o.side, map[string]side{"spoke": managed}, both, hub, managed).AddTo(cmd, "side", "", "which side to clean up")
	f.StringVar(&o.admin.Name, "hub-context", "", "kubeconfig context of the hub's administrator")
	f.StringVar(&o.admin.Kubeconfig, "hub-kubeconfig", "", "kubeconfig file of the hub's administrator, if it is another one")
	cli.NewEnum(&o.works, nil, install.DeleteResources, install.OrphanResources).
		AddTo(cmd, "works", "", "What becomes of the resources of ManifestWorks (--force orphans them)")
	f.BoolVar(&o.force, "force", false, "Continue although ManifestWorks remain, the hub cannot be reached, or the agent or operator is gone")
	f.BoolVar(&o.purge, "purge-operator", true, "remove the operator as well")
	f.BoolVar(&o.all, "purge", false, "Delete also what otherwise stays: the namespace of the cluster on the hub, with all that is in it, and CRDs on the managed cluster")
	cli.AddYesFlag(f, &o.yes)
	o.wait.AddTo(cmd, "wait until the hub has cleaned up as well")
	o.changes.AddTo(cmd)
	o.env.Kube.AddDryRunFlag(cmd)
	cli.AliasFlag(cmd, "spoke-context", "context")
	flags.AddCompat(cmd, nil, map[string]string{"output-file": "use --dry-run to see what would happen"})
	_ = cmd.RegisterFlagCompletionFunc("cluster-name", fleet.CompleteClusters(o.env))
}

func (o *options) complete(args []string) error {
	if len(args) == 1 {
		if o.cluster != "" && o.cluster != args[0] {
			return cli.Usagef("two cluster names were given: %s and %s", args[0], o.cluster)
		}
		o.cluster = args[0]
	}
	if o.cluster == "" {
		if err := o.env.Ask(cli.Question{Flag: "cluster-name", Text: "Name of the cluster on the hub:", Answer: &o.cluster}); err != nil {
			return err
		}
	}
	if err := names.ValidateClusterName(o.cluster); err != nil {
		return cli.Usagef("%v", err)
	}
	if o.side == managed && o.admin != (cli.Context{}) {
		return cli.Usagef("--hub-context has no meaning with --side=managed")
	}
	if o.side == hub && o.works != "" {
		return cli.Usagef("--works is about the managed cluster and has no meaning with --side=hub")
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	var err error
	switch o.side {
	case hub:
		err = o.detach(ctx, o.admin)
	case both, managed:
		err = o.leave(ctx)
		if err == nil && o.side == both && o.admin != (cli.Context{}) {
			err = o.detach(ctx, o.admin)
		}
	}
	if err != nil {
		return o.explain(err)
	}
	return o.done()
}

func (o *options) done() error {
	text := fmt.Sprintf("Applied resources have been deleted during the %[1]s joined stage. The status of mcl %[1]s will be unknown in the hub cluster.", o.cluster)
	switch {
	case o.env.Kube.DryRun() != cli.DryRunNone:
		text = "Nothing was removed" + o.env.Kube.DryRunSuffix() + "."
	case o.side == hub && o.wait.Enabled:
		text = fmt.Sprintf("Cluster %s is removed from the hub.", o.cluster)
	case o.side == hub:
		text = fmt.Sprintf("Cluster %s is being removed from the hub.", o.cluster)
	case o.left && o.works == install.OrphanResources:
		text = fmt.Sprintf("Cluster %s has left the hub. The resources of its ManifestWorks stay.", o.cluster)
	case o.left:
		text = fmt.Sprintf("Applied resources have been deleted during the %s joined stage. The cluster has left the hub.", o.cluster)
	}
	return o.changes.Print(text)
}

// explain says what stands in the way.
func (o *options) explain(err error) error {
	if refused, ok := errors.AsType[*cli.WriteRefusedError](err); ok {
		o.env.Say("Nothing was removed (dry run); the first write would have been: %s %s", refused.Method, refused.Path)
		return nil
	}
	return err
}
