package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/acceptance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func (o *options) run(ctx context.Context, p plan) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	if o.env.Kube.DryRun() == cli.DryRunClient {
		return o.render(ctx, p)
	}
	runner, err := o.runner()
	if err != nil {
		return err
	}
	if err := o.refreshName(ctx, runner, &p); err != nil {
		return err
	}
	hub, err := o.connect(ctx, runner.Client, &p)
	if err != nil {
		return o.timedOut(fleet.Explain(err), p, "the hub")
	}
	if p.klusterlet.ExternalServer, err = fleet.ExternalServer(ctx, runner.Client); err != nil {
		return err
	}
	if err := o.writeFile(p.klusterlet); err != nil {
		return err
	}
	outcome, err := runner.Join(ctx, p.klusterlet, hub.cluster)
	if err != nil {
		return o.timedOut(fleet.Explain(err), p, "the agent's objects")
	}
	if o.env.Kube.DryRun() == cli.DryRunServer {
		o.env.Say("The server would accept all of it; nothing was changed.")
		return nil
	}
	if !outcome.Changes.Changed() {
		o.env.Say("The agent was as it should be; nothing was changed.")
	}
	return o.finish(ctx, p, runner, hub)
}

func (o *options) runner() (*install.Runner, error) {
	runner, err := fleet.CurrentRunner(o.env)
	if err != nil {
		return nil, err
	}
	runner.Skip = o.skip
	return runner, nil
}

// refreshName takes the name of the installed agent for --refresh.
func (o *options) refreshName(ctx context.Context, runner *install.Runner, p *plan) error {
	if !o.refresh {
		return nil
	}
	name, err := runner.ClusterName(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		return cli.NotFoundf("join it first, without --refresh", "there is no agent on this cluster to refresh")
	}
	if p.klusterlet.ClusterName == "" {
		p.klusterlet.ClusterName = name
	}
	return nil
}

// finish waits, and accepts where that was asked for.
func (o *options) finish(ctx context.Context, p plan, runner *install.Runner, hub *hub) error {
	name := p.klusterlet.ClusterName
	if !o.wait.Enabled && !p.oneShot {
		return o.next(name, "")
	}
	if err := runner.AwaitAgent(ctx); err != nil {
		return o.timedOut(err, p, "the agent")
	}
	key, err := runner.AwaitKey(ctx)
	if err != nil {
		return o.timedOut(err, p, "the agent to ask for a certificate")
	}
	if p.oneShot {
		if err := o.accept(ctx, hub, name, key); err != nil {
			return err
		}
	} else if key != "" && !hub.accepted(ctx, name) {
		o.env.Say("This cluster asks the hub with the key %s.", key)
		o.env.Say("On the hub, run:  %s accept --clusters %s", o.env.Name, name)
	}
	if err := runner.AwaitJoined(ctx); err != nil {
		return o.timedOut(err, p, "the hub to accept the cluster")
	}
	if how := hub.acceptedHow(ctx, name); how != "" {
		o.env.Say("%s", how)
	}
	_, err = fmt.Fprintf(o.env.Out, "Cluster %s has joined the hub %s.\n", name, hub.server)
	return err
}

// accept accepts the very key that this cluster's agent holds.
func (o *options) accept(ctx context.Context, hub *hub, name, key string) error {
	r := &acceptance.Runner{
		Env: o.env, Client: hub.admin, Wait: cli.Wait{Enabled: true, Timeout: o.wait.Timeout},
		Choice: acceptance.Choice{Fingerprint: key},
	}
	_, err := r.One(ctx, name)
	return err
}

// next tells what to do on the hub.
func (o *options) next(name, key string) error {
	if key != "" {
		o.env.Say("This cluster asks the hub with the key %s.", key)
	}
	_, err := fmt.Fprintf(o.env.Out, `Please log onto the hub cluster and run the following command:

    %s accept --clusters %s

This is not needed when the ManagedClusterAutoApproval feature is enabled
`, o.env.Name, name)
	return err
}

func (o *options) timedOut(err error, p plan, waiting string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if unmet := install.Unmet(err); unmet != "" {
		waiting += " (" + unmet + ")"
	}
	return o.wait.TimedOut(err, waiting, fmt.Sprintf("on the hub: %s accept --clusters %s; here: %s check spoke", o.env.Name, p.klusterlet.ClusterName, o.env.Name))
}

// render prints what a new agent consists of, without a managed cluster. The
// hub is contacted only to find a CA that is pinned by its hash.
func (o *options) render(ctx context.Context, p plan) error {
	if p.oneShot {
		return cli.Usagef("--dry-run=client makes no token, so it needs --hub-token and --hub-apiserver instead of --hub-context")
	}
	if err := o.offline(ctx, &p); err != nil {
		return fleet.Explain(err)
	}
	objs, err := p.klusterlet.Render()
	if err != nil {
		return err
	}
	if o.file != "" {
		return writeObjects(o.file, objs)
	}
	return fleet.PrintObjects(o.env.Out, objs)
}

func (o *options) writeFile(k install.Klusterlet) error {
	if o.file == "" {
		return nil
	}
	objs, err := k.Render()
	if err != nil {
		return err
	}
	return writeObjects(o.file, objs)
}

// writeObjects writes to a file that only its owner reads: the token is in it.
func writeObjects(path string, objs []client.Object) error {
	var out bytes.Buffer
	if err := fleet.PrintObjects(&out, objs); err != nil {
		return err
	}
	return cli.WriteSecretFile(path, out.Bytes())
}

// accepted reports whether the hub has accepted the cluster already.
func (h *hub) accepted(ctx context.Context, name string) bool {
	cluster := h.look(ctx, name)
	return cluster != nil && cluster.Spec.HubAcceptsClient
}

// acceptedHow says who accepted the cluster, where that is known.
func (h *hub) acceptedHow(ctx context.Context, name string) string {
	cluster := h.look(ctx, name)
	if cluster == nil {
		return ""
	}
	if at := cluster.Annotations[names.AnnotationAutoAccepted]; at != "" {
		return "The hub accepted the cluster by itself at " + at + "."
	}
	return ""
}

// look reads the cluster on the hub; nil when it is not there or not readable.
func (h *hub) look(ctx context.Context, name string) *clusterv1.ManagedCluster {
	if h.client == nil {
		return nil // the hub cannot be reached from here
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := h.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil
	}
	return cluster
}
