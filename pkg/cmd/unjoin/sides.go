package unjoin

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	installhub "github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/leave"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// hubPatience bounds how long an unreachable hub is tried.
const hubPatience = 20 * time.Second

// interval is how often the hub is asked whether it has cleaned up.
const interval = time.Second

// leave cleans up the managed cluster.
func (o *options) leave(ctx context.Context) error {
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return err
	}
	installed, err := o.find(ctx, runner)
	if cli.ExitCode(err) == cli.CodeNotFound && o.all {
		return o.late(ctx, runner, err)
	}
	if err != nil {
		return err
	}
	if err := o.confirmLeaving(installed); err != nil {
		return err
	}
	if installed.Klusterlet != nil {
		o.changes.Note(fleet.KlusterletRef(installed.Klusterlet.Name), "deleted")
	}
	leaving := install.Removal{Force: o.force, Purge: o.purge, Works: o.works}
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.plan(ctx, runner, installed, leaving)
	}
	if o.side == both && installed.Klusterlet != nil {
		if err := o.resign(ctx, runner, installed); err != nil {
			return err
		}
	}
	return o.remove(ctx, runner, installed, leaving)
}

// remove removes the agent, and names what stays.
func (o *options) remove(ctx context.Context, runner *install.Runner, installed agent.Installed, leaving install.Removal) error {
	left, err := leave.Runner{Runner: runner}.Leave(ctx, installed, leaving)
	for _, what := range left {
		o.env.Warn("left behind: %s", what)
	}
	if err != nil {
		return o.blocked(err, "the agent to be removed")
	}
	if !o.purge || o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	remains, err := runner.AgentRemains(ctx)
	return o.settle(ctx, runner, remains, err)
}

// late deletes what an earlier run left on the managed cluster, or returns that there is no
// agent.
func (o *options) late(ctx context.Context, runner *install.Runner, noAgent error) error {
	remains, err := runner.AgentRemains(ctx)
	if err != nil || len(remains) == 0 {
		return errors.Join(err, noAgent)
	}
	if err := o.env.Confirm(o.yes, "The agent is removed already."+o.purged()); err != nil {
		return err
	}
	return o.settle(ctx, runner, remains, nil)
}

// settle names what stays on a side, or deletes it.
func (o *options) settle(ctx context.Context, runner *install.Runner, remains []install.Remain, err error) error {
	switch {
	case err != nil:
		return err
	case o.all:
		return o.blocked(runner.Purge(ctx, remains), "what stays to be deleted")
	}
	fleet.SayRemains(o.env, runner, remains)
	return nil
}

// find returns the agent, if it may be removed.
func (o *options) find(ctx context.Context, runner *install.Runner) (agent.Installed, error) {
	installed, err := agent.Runner{Runner: runner}.Find(ctx, o.cluster)
	switch {
	case errors.Is(err, agent.ErrNoAgent):
		return installed, o.noAgent(runner)
	case err != nil:
		return installed, err
	case len(installed.Works) > 0 && o.works == "" && !o.force:
		o.sayWorks(installed)
		return installed, cli.Blockedf("delete the ManifestWorks on the hub first, or choose --works=delete or --works=orphan",
			"%v", &agent.WorksRemainError{Works: installed.Works})
	case installed.Klusterlet == nil:
		o.env.Say("The agent of %s is gone already; removing the operator that it has left.", o.cluster)
	}
	return installed, nil
}

// plan prints what would happen.
func (o *options) plan(ctx context.Context, runner *install.Runner, installed agent.Installed, leaving install.Removal) error {
	lines, err := leave.Runner{Runner: runner}.Plan(ctx, installed, leaving)
	if err != nil {
		return err
	}
	if o.side == both && installed.Hub != nil {
		lines = append([]string{"on the hub " + installed.Hub.Cluster.Server + ": hubAcceptsClient of " + o.cluster + " set to false"}, lines...)
	}
	return o.changes.Plan(lines...)
}

// noAgent distinguishes a wrong name or context from a cluster that never joined.
func (o *options) noAgent(runner *install.Runner) error {
	if managed, err := lookup.IsManaged(runner.Client); err == nil && managed {
		return cli.NotFoundf("see which it is with: "+o.env.Command("get klusterlet-info"), "this cluster has not joined as %s", o.cluster)
	}
	return cli.NotFoundf("check that --context names the managed cluster", "klusterlet CRD not found, there is no need to unjoin %s", o.cluster)
}

// resign withdraws the hub's acceptance. If that is not possible nothing is
// removed, because afterwards there is no credential to do it with.
func (o *options) resign(ctx context.Context, runner *install.Runner, installed agent.Installed) error {
	if installed.Hub == nil {
		o.env.Say("The hub never gave this cluster a credential; there is nothing to take back.")
		return nil
	}
	err := o.env.Progress().Step(ctx, "Reporting the detachment to the hub "+installed.Hub.Cluster.Server, func(ctx context.Context, say cli.Say) error {
		config, release, err := agent.Runner{Runner: runner}.HubConnection(ctx, installed)
		if err != nil {
			return err
		}
		defer release()
		c, err := o.connect(config)
		if err != nil {
			return err
		}
		if err := leave.Resign(ctx, c, o.cluster); err != nil {
			return o.unlessResigned(ctx, runner, err)
		}
		return o.awaitDenial(ctx, c, say)
	})
	var refused *cli.WriteRefusedError
	o.left = err == nil
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, &refused):
		return err
	case o.force:
		o.env.Warn("the hub does not know that the cluster has left: %v", err)
		o.env.Say("  On the hub, run:  %s", o.onHub())
		return nil
	}
	explained := cli.Explain(err)
	return &cli.Explained{
		Problem: "cannot reach the hub to detach the cluster; nothing was removed",
		Try:     "repair the connection, or remove the two sides apart: here with: " + o.here() + ", on the hub with: " + o.onHub(),
		Code:    cli.CodeBlocked, Cause: explained,
	}
}

// connect returns a client for a hub that may not answer.
func (o *options) connect(config *rest.Config) (client.Client, error) {
	config.Timeout = hubPatience
	return cli.NewClient(o.env.Kube.Guard(config))
}

// unlessResigned returns err, and nothing if a provider does not give out the cluster's
// identity any more because the hub has denied the cluster already.
func (o *options) unlessResigned(ctx context.Context, runner *install.Runner, err error) error {
	if !errors.Is(err, driver.ErrDenied) {
		return err
	}
	resigned, askErr := agent.Runner{Runner: runner}.Resigned(ctx, o.cluster, o.connect)
	if askErr == nil && resigned {
		return nil
	}
	return err
}

// here is the command that cleans up on the managed cluster alone.
func (o *options) here() string {
	args := []string{"unjoin", o.cluster, "--side=managed"}
	if o.works != "" {
		args = append(args, "--works="+string(o.works))
	}
	return o.env.Command(args...)
}

// onHub is the command that cleans up on the hub.
func (o *options) onHub() string {
	if o.admin == (cli.Context{}) {
		return o.env.Elsewhere("unjoin", o.cluster, "--side=hub")
	}
	return o.env.CommandAt(o.admin, "unjoin", o.cluster, "--side=hub")
}

// awaitDenial waits, if asked to, until the hub has taken back what it granted.
// The agent may still read its own cluster then.
func (o *options) awaitDenial(ctx context.Context, c client.Client, say cli.Say) error {
	for o.wait.Enabled && o.env.Kube.DryRun() == cli.DryRunNone {
		cluster := &clusterv1.ManagedCluster{}
		err := c.Get(ctx, client.ObjectKey{Name: o.cluster}, cluster)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || errors.Is(err, driver.ErrDenied) {
			return nil
		}
		if err == nil && !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
			return nil
		}
		say("waiting for the hub to take back what it granted")
		if !pause.For(ctx, o.env.Clock, interval) {
			return ctx.Err()
		}
	}
	return nil
}

// planDetaching prints what would be removed from the hub.
func (o *options) planDetaching(ctx context.Context, hub client.Client) error {
	cluster := &clusterv1.ManagedCluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: o.cluster}, cluster); err != nil {
		return o.unknown(ctx, hub, err)
	}
	lines := []string{"on the hub: " + fleet.ClusterRef(o.cluster, time.Time{}).String()}
	if o.all {
		lines = append(lines, "on the hub: namespace/"+o.cluster)
	}
	return o.changes.Plan(lines...)
}

// detach cleans up the hub, as its administrator.
func (o *options) detach(ctx context.Context, admin cli.Context) error {
	runner, err := fleet.NewRunner(o.env, o.env.Kube.Of(admin))
	if err != nil {
		return err
	}
	// The namespace of a cluster is deleted when the hub is done with it.
	runner.Wait = o.wait.Enabled || o.all
	if err := fleet.RequireHub(ctx, o.env, runner.Client); err != nil {
		return err
	}
	if o.side == hub {
		if err := o.confirmDetaching(ctx, runner.Client, admin); err != nil && (!o.all || !apierrors.IsNotFound(err)) {
			return o.unknown(ctx, runner.Client, err)
		}
	}
	o.changes.Note(fleet.ClusterRef(o.cluster, time.Time{}), "deleted")
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.planDetaching(ctx, runner.Client)
	}
	return o.delete(ctx, runner)
}

// delete deletes the cluster on the hub, and names what stays of it.
func (o *options) delete(ctx context.Context, runner *install.Runner) error {
	err := installhub.Runner{Runner: runner}.Detach(ctx, o.cluster, install.Removal{Force: o.force})
	gone := apierrors.IsNotFound(err)
	o.left = err == nil
	if err != nil && (!gone || !o.all) || o.env.Kube.DryRun() != cli.DryRunNone {
		return o.blocked(o.unknown(ctx, runner.Client, err), "the hub to remove the cluster")
	}
	remains, listErr := runner.HubRemains(ctx, o.cluster)
	if gone && len(remains) == 0 {
		return o.unknown(ctx, runner.Client, err)
	}
	if gone && o.side == hub {
		if err := o.env.Confirm(o.yes, "The hub has deleted the cluster "+o.cluster+" already."+o.purged()); err != nil {
			return err
		}
	}
	return o.settle(ctx, runner, remains, listErr)
}

// unknown explains that the hub has no such cluster, if err says so.
func (o *options) unknown(ctx context.Context, hub client.Reader, err error) error {
	if apierrors.IsNotFound(err) {
		return fleet.UnknownCluster(ctx, hub, o.cluster, "list the clusters with: "+o.env.CommandAt(o.admin, "get clusters"))
	}
	return err
}

func (o *options) blocked(err error, waiting string) error {
	if why := install.Unblocked(err); why != "" {
		waiting += " (" + why + ")"
	}
	return o.wait.TimedOut(err, waiting, "look at what is named, or add --force")
}
