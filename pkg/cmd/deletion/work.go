package deletion

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

type workOptions struct {
	env      cli.Env
	changes  *cli.Changes
	wait     cli.Wait
	name     string
	clusters []string
	// placement and set choose a ManifestWorkReplicaSet instead of clusters.
	placement string
	set       bool
	orphan    bool
	force     bool
	yes       cli.Yes
}

func newWork(env cli.Env) *cobra.Command {
	o := &workOptions{env: env, changes: cli.NewChanges(env), wait: cli.Wait{Enabled: true}}
	cmd := &cobra.Command{
		Use:   "work NAME",
		Short: "Delete a ManifestWork and what it deployed",
		Long: `Delete a ManifestWork and what it deployed.

The work agent of the cluster deletes the resources that it applied, except
those that the ManifestWork orphans, and then releases the ManifestWork.

With --orphan all resources stay on the managed cluster and belong to no
ManifestWork any more. The command deletes the ManifestWork after the agent has
applied that change, so it needs an agent that is connected.

With --force the ManifestWork is deleted without the agent, for a cluster that
does not exist any more. An agent that comes back deletes the resources after
its grace period for ManifestWorks that are gone, an hour by default.

The hub makes a ManifestWork of a ManifestWorkReplicaSet again, so the command
refuses to delete one. With --placement and --replicaset, as in "create work",
it deletes the ManifestWorkReplicaSet with all of its ManifestWorks.`,
		Example: fmt.Sprintf(`  # Delete a ManifestWork, and wait until the agent has cleaned up
  %[1]s delete work app --clusters cluster1

  # Keep the resources on the managed cluster
  %[1]s delete work app --clusters cluster1 --orphan

  # Delete a ManifestWork with which the hub follows a placement, everywhere
  %[1]s delete work app --placement default/app --replicaset`, env.Name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: works.CompleteNames(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			return o.changes.End(works.Explain(env, o.run(cmd.Context())))
		},
	}
	works.AddClustersFlag(env, cmd, &o.clusters, "Names of the clusters, separated by commas")
	f := cmd.Flags()
	f.StringVar(&o.placement, "placement", "", "Placement that the ManifestWorkReplicaSet follows, NAMESPACE/NAME")
	f.BoolVar(&o.set, "replicaset", false, "Delete the ManifestWorkReplicaSet for --placement")
	f.BoolVar(&o.orphan, "orphan", false, "Keep the resources on the managed clusters")
	f.BoolVar(&o.force, "force", false, "Do not wait for the agent to clean up; the resources stay")
	cli.AddYesFlag(f, &o.yes)
	o.wait.AddTo(cmd, "Wait until the ManifestWork is gone")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("orphan", "force", "replicaset")
	cmd.MarkFlagsMutuallyExclusive("clusters", "placement")
	cmd.MarkFlagsRequiredTogether("placement", "replicaset")
	return cmd
}

func (o *workOptions) validate() error {
	if o.set {
		return nil
	}
	if len(o.clusters) == 0 {
		return cli.Usagef("name the clusters with --clusters")
	}
	return works.ValidateClusters(&o.clusters)
}

func (o *workOptions) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	hub, err := works.Hub(ctx, o.env)
	if err != nil {
		return err
	}
	if o.set {
		return o.runSet(ctx, hub)
	}
	return o.runCopies(ctx, hub)
}

// runCopies deletes the copies of a work on clusters.
func (o *workOptions) runCopies(ctx context.Context, hub delivery.Hub) error {
	found, missing, err := hub.Copies(ctx, o.name, o.clusters)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return o.gone(works.NotFound(o.env, o.name, missing))
	}
	if err := hub.RequireFree(ctx, found); err != nil {
		return err
	}
	if err := o.confirm(found); err != nil {
		return err
	}
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.print(found, "deleted")
	}
	if err := o.delete(ctx, hub, found); err != nil {
		return err
	}
	if !o.wait.Enabled || o.env.Kube.DryRun() != cli.DryRunNone {
		return o.print(found, "deleted")
	}
	if err := o.await(ctx, hub, "the agents to clean up", hub.AwaitGone); err != nil {
		return err
	}
	return o.print(found, "deleted")
}

// gone is the error about works that do not exist, which is none for a script that was
// written for clusteradm.
func (o *workOptions) gone(missing error) error {
	if o.env.Name != cli.Clusteradm {
		return missing
	}
	return o.changes.Print(fmt.Sprintf("work %s not found or is already deleted", o.name))
}

// confirm says what is lost.
func (o *workOptions) confirm(found []workv1.ManifestWork) error {
	resources, owners := 0, ""
	for i := range found {
		w := report.Describe(&found[i])
		resources += len(w.Manifests)
		if w.Owner != "" {
			owners = fmt.Sprintf(" It belongs to %s, which may create it again.", w.Owner)
		}
	}
	fate := "The agents delete the %s that it deployed."
	switch {
	case o.orphan:
		fate = "The %s that it deployed stay and are no longer updated."
	case o.force:
		fate = "The agents are not asked: the %s that it deployed stay."
	}
	return o.env.Confirm(o.yes, fmt.Sprintf("Delete ManifestWork %s on %s? "+fate+"%s",
		o.name, excerpt.List(o.clusters, ", "), report.Sum(resources, "resource"), owners))
}

// delete requests the deletion of every copy. Orphaning comes first, for all of them.
func (o *workOptions) delete(ctx context.Context, hub delivery.Hub, found []workv1.ManifestWork) error {
	if o.orphan {
		if err := o.orphanAll(ctx, hub, found); err != nil {
			return err
		}
	}
	remove := hub.Delete
	if o.force && o.env.Kube.DryRun() == cli.DryRunNone {
		remove = hub.DeleteWithoutAgent
	}
	for i := range found {
		if err := remove(ctx, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *workOptions) orphanAll(ctx context.Context, hub delivery.Hub, found []workv1.ManifestWork) error {
	for i := range found {
		if err := hub.Orphan(ctx, &found[i]); err != nil {
			return err
		}
	}
	if o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	return o.await(ctx, hub, "the agents to orphan the resources", hub.AwaitOrphaned)
}

// await waits for all copies in a step of its own.
func (o *workOptions) await(ctx context.Context, hub delivery.Hub, what string, wait func(context.Context, string, []string, delivery.Progress) error) error {
	err := o.env.Progress().Step(ctx, "Waiting for "+what, func(ctx context.Context, say cli.Say) error {
		return wait(ctx, o.name, o.clusters, func(cluster, message string) { say("%s: %s", cluster, message) })
	})
	if err == nil {
		return nil
	}
	try := o.env.Command("check", "work", o.name, "--cluster", o.clusters[0]) + o.orForce(ctx, hub)
	return o.wait.TimedOut(err, what+" ("+delivery.Unmet(err)+")", try)
}

// orForce offers --force if the agent of a cluster is away, and only then: an agent that is
// there deletes what would stay.
func (o *workOptions) orForce(ctx context.Context, hub delivery.Hub) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if cluster := hub.Away(ctx, o.clusters); cluster != "" {
		return fmt.Sprintf("; the agent of %s is away: without it, use --force", cluster)
	}
	return ""
}

func (o *workOptions) print(found []workv1.ManifestWork, action string) error {
	for i := range found {
		if err := o.changes.Add(works.Ref(found[i].Namespace, found[i].Name, found[i].CreationTimestamp.Time), action); err != nil {
			return err
		}
	}
	return nil
}
