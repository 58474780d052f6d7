package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/approver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	// keyPatience is how long a join that was not asked to wait looks for the
	// agent's key. An agent whose image is there makes it within seconds.
	keyPatience = 20 * time.Second
	// revokePatience bounds the revocation of a token when the time of the command is up.
	revokePatience = 15 * time.Second
)

func (o *options) run(ctx context.Context, p plan) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := o.runner()
	if err != nil {
		return err
	}
	// Before the hub makes a token for a cluster that cannot use it.
	if err := runner.RefuseOthersAgent(ctx); err != nil {
		return fleet.Explain(err)
	}
	if err := o.keepDriver(ctx, runner); err != nil {
		return err
	}
	if o.refresh {
		if err := o.complement(ctx, runner, &p); err != nil {
			return err
		}
	}
	hub, err := o.connect(ctx, runner.Client, &p)
	if err != nil {
		return errors.Join(o.timedOut(fleet.Explain(err), p, hub, "the hub"), o.revoke(ctx, p, hub))
	}
	if err := o.install(ctx, p, runner, hub); err != nil {
		// The next run creates another one.
		return errors.Join(err, o.revoke(ctx, p, hub))
	}
	if o.env.Kube.DryRun() == cli.DryRunServer {
		o.env.Say("The server would accept all of it; nothing was changed.")
		return nil
	}
	if err := o.finish(ctx, p, runner, hub); err != nil {
		if p.oneShot {
			o.env.Say("The agent may still need the bootstrap token %s; it is valid until %s.", p.token.ID, p.token.Expires.UTC().Format(time.RFC3339))
		}
		return err
	}
	return o.revoke(ctx, p, hub)
}

// install brings the agent to what the plan wants.
func (o *options) install(ctx context.Context, p plan, runner agent.Runner, hub *hub) error {
	err := o.requireSameHub(ctx, p, runner)
	if err != nil {
		return err
	}
	if p.klusterlet.ExternalServer, err = fleet.ExternalServer(ctx, runner.Client); err != nil {
		return err
	}
	if err := o.writeFile(p.klusterlet); err != nil {
		return err
	}
	outcome, err := runner.Install(ctx, p.klusterlet, hub.cluster)
	fleet.NoteApplied(o.changes, outcome.Changes)
	if err != nil {
		return o.timedOut(fleet.Explain(err), p, hub, "the agent's objects")
	}
	switch {
	case o.env.Kube.DryRun() != cli.DryRunNone:
		return nil
	case o.rotate:
		o.env.Say("The agent gives up its certificate. The cluster has no connection until the hub accepts the new key.")
		return runner.DropCredential(ctx)
	case outcome.Changes.Changed():
		return o.sayWorkPermissions(ctx, runner)
	}
	o.env.Say("The agent is up to date; nothing was changed.")
	return nil
}

// revoke revokes the token that a one-shot join created for itself.
func (o *options) revoke(ctx context.Context, p plan, hub *hub) error {
	if !p.oneShot || p.token.ID == "" {
		return nil
	}
	tokens := bootstrap.Tokens{Client: hub.admin, Clock: o.env.Clock}
	_, err := tokens.Revoke(ctx, p.token.ID)
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokePatience)
		defer cancel()
		_, err = tokens.Revoke(late, p.token.ID)
	}
	if err != nil && !errors.Is(err, bootstrap.ErrNoToken) {
		return fmt.Errorf("the bootstrap token is still valid until %s: %w", p.token.Expires.UTC().Format(time.RFC3339), err)
	}
	return nil
}

// keepDriver fills in how the installed agent registers, if no flag says so: what
// the command waits for, and what is to be done on the hub, follow from it.
func (o *options) keepDriver(ctx context.Context, runner agent.Runner) error {
	d := &o.registration.drivers
	if d.kind == "" {
		installed, err := runner.Klusterlet(ctx)
		if err != nil {
			return err
		}
		if installed != nil {
			d.retain(installed)
		}
	}
	if by := d.identifier(); by != nil && o.rotate {
		return cli.Usagef("--rotate is for client certificates: this cluster registers with its %s, which has no key", by.Words().Identity)
	}
	return nil
}

// complement fills in, from the installed agent, what a refresh was not given.
func (o *options) complement(ctx context.Context, runner agent.Runner, p *plan) error {
	name, err := runner.ClusterName(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		if hidden, err := runner.Hidden(ctx); hidden || err != nil {
			return errors.Join(err, cli.Blockedf("run the command with permission to get klusterlets", "whether there is an agent on this cluster is not known: the Klusterlet cannot be read"))
		}
		return cli.NotFoundf("join it first, without --refresh", "there is no agent on this cluster to refresh")
	}
	p.klusterlet.ClusterName = cmp.Or(p.klusterlet.ClusterName, name)
	if p.oneShot {
		return nil
	}
	stored, err := agent.StoredBootstrap(ctx, runner.Client)
	if err != nil {
		return err
	}
	if stored == nil {
		stored = &kubeconfig.Hub{}
	}
	p.endpoint.Server = cmp.Or(p.endpoint.Server, stored.Cluster.Server)
	p.endpoint.ProxyURL = cmp.Or(p.endpoint.ProxyURL, stored.Cluster.ProxyURL)
	if len(p.endpoint.CA)+len(p.endpoint.Pins) == 0 {
		p.endpoint.CA = stored.Cluster.CertificateAuthorityData
	}
	if p.token.Secret() == "" {
		p.token, err = bootstrap.ParseToken(stored.User.Token)
		p.storedToken = err == nil
	}
	if p.endpoint.Server == "" || err != nil {
		return cli.Usagef("the agent has no bootstrap kubeconfig that could be kept: give --hub-apiserver and --hub-token-file")
	}
	return nil
}

// finish waits for the agent, and then for the hub.
func (o *options) finish(ctx context.Context, p plan, runner agent.Runner, hub *hub) error {
	name := p.klusterlet.ClusterName
	if !o.wait.Enabled && !p.oneShot {
		return o.next(ctx, runner, hub, name)
	}
	if err := runner.AwaitAgent(ctx); err != nil {
		return o.timedOut(err, p, hub, "the agent")
	}
	key, own, err := o.ownKey(ctx, runner)
	if err != nil {
		return o.timedOut(err, p, hub, "the agent to ask for a certificate")
	}
	if o.env.Name != cli.Clusteradm || p.oneShot {
		return o.join(ctx, p, runner, hub, key, own)
	}
	// Scripts for clusteradm accept the cluster after join has ended.
	if err := o.awaitRequest(ctx, hub, name, key); err != nil {
		return o.timedOut(err, p, hub, "the agent's request on the hub")
	}
	return o.sayAccept(o.acceptArgs(hub, name, key))
}

// join waits until the cluster has joined, and accepts it where that was asked for. key is
// the one that the agent registers with, and own returns the current one.
func (o *options) join(ctx context.Context, p plan, runner agent.Runner, hub *hub, key string, own func(context.Context) (string, error)) error {
	name := p.klusterlet.ClusterName
	if err := o.acceptOrAwait(ctx, p, hub, key, own); err != nil {
		return err
	}
	if err := runner.AwaitJoined(ctx); err != nil {
		waiting := "the hub to accept the cluster"
		if p.oneShot { // The command has accepted it.
			waiting = "the agent to connect with its credential"
		}
		return o.timedOut(err, p, hub, waiting)
	}
	if err := o.awaitAvailable(ctx, hub, name); err != nil {
		return o.timedOut(err, p, hub, "the hub to show the cluster as available")
	}
	if cluster := hub.look(ctx, name); cluster != nil && cluster.Annotations[names.AnnotationAutoAccepted] != "" {
		o.env.Say("The hub accepted the cluster by itself at %s.", cluster.Annotations[names.AnnotationAutoAccepted])
	}
	if err := o.lifetimes(ctx, runner); err != nil {
		return err
	}
	return o.changes.Print(fmt.Sprintf("Cluster %s has joined the hub %s.", name, hub.server))
}

// acceptOrAwait accepts the cluster if the hub's administrator runs the command, and
// otherwise prints the command for the hub, if one is needed.
func (o *options) acceptOrAwait(ctx context.Context, p plan, hub *hub, key string, own func(context.Context) (string, error)) error {
	name := p.klusterlet.ClusterName
	if p.oneShot {
		return o.accept(ctx, hub, name, own)
	}
	if o.changesDriver(hub) || key != "" && (o.rotate || !hub.accepted(ctx, name)) {
		if key != "" {
			o.env.Say("The agent registers with the key %s.", key)
		}
		o.env.Say("On the hub, run:  %s", o.onHub(o.acceptArgs(hub, name, key)...))
	}
	if err := o.awaitChange(ctx, hub, name); err != nil {
		return o.timedOut(err, p, hub, "the hub to change how the cluster registers")
	}
	return nil
}

// ownKey returns the fingerprint of the key that the agent registers with, and a
// function that returns the current one. An agent that a
// driver identifies otherwise has no key.
func (o *options) ownKey(ctx context.Context, runner agent.Runner) (key string, own func(context.Context) (string, error), err error) {
	if o.registration.drivers.identifier() != nil {
		return "", nil, nil
	}
	if key, err = runner.AwaitKey(ctx); err != nil {
		return "", nil, err
	}
	return key, runner.OwnKey(key), nil
}

// lifetimes says how long the credentials are valid that the agent holds and
// requests.
func (o *options) lifetimes(ctx context.Context, runner agent.Runner) error {
	agent, err := runner.Named(ctx, names.KlusterletName)
	if err != nil {
		return err
	}
	if certs, err := pemutil.ParseCertificates(agent.Data[names.KeyTLSCert]); err == nil {
		cert := certs[0]
		o.env.Say("The cluster's certificate is valid until %s (lifetime %s) and is renewed before.",
			cert.NotAfter.UTC().Format(time.RFC3339), credential.Lifetime(cert.NotAfter.Sub(cert.NotBefore)))
	}
	if life := agent.AddOnTokenLifetime(); life > 0 {
		o.env.Say("Tokens of add-ons have a lifetime of %s. Change it with: %s", credential.Lifetime(life),
			o.env.Command("addon-auth", "set", "--driver", "token", "--expiration-seconds", "SECONDS"))
	}
	return nil
}

// accept accepts the very key that this cluster's agent has. An agent whose credential
// a recreated hub rejects creates its key later.
func (o *options) accept(ctx context.Context, hub *hub, name string, own func(context.Context) (string, error)) error {
	r := approver.New(o.env, hub.admin, cli.Wait{Enabled: true, Timeout: o.wait.Timeout}, o.hub.admin)
	r.Own, r.Choice.Register = own, o.register(hub)
	if by := o.registration.drivers.identifier(); by != nil {
		r.Hub = by.Hub(o.registration.drivers.settings)
	}
	_, err := r.One(ctx, name)
	return err
}

// next says what to do on the hub, with the key to compare. The agent makes its
// key as soon as it runs; a script for clusteradm does not wait for it.
func (o *options) next(ctx context.Context, runner agent.Runner, hub *hub, name string) error {
	accept := o.acceptArgs(hub, name, "")
	if o.env.Name != cli.Clusteradm && o.registration.drivers.identifier() == nil {
		key, err := runner.GlimpseKey(ctx, keyPatience)
		switch {
		case err != nil:
			return err
		case key != "":
			o.env.Say("The agent registers with the key %s.", key)
			accept = o.acceptArgs(hub, name, key)
		default:
			o.env.Say("The key of the agent is shown by: %s", o.env.Command("check", "agent"))
		}
	}
	return o.sayAccept(accept)
}

// sayAccept prints the command that accepts the cluster, on the hub.
func (o *options) sayAccept(accept []string) error {
	return o.changes.Print(fmt.Sprintf(`Please log onto the hub cluster and run the following command:

    %s

This is not needed when the ManagedClusterAutoApproval feature is enabled`, o.onHub(accept...)))
}

func (o *options) timedOut(err error, p plan, hub *hub, waiting string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if unmet := install.Unmet(err); unmet != "" {
		waiting += " (" + unmet + ")"
	}
	return o.wait.TimedOut(err, waiting, fmt.Sprintf("on the hub: %s; here: %s", o.onHub(o.acceptArgs(hub, p.klusterlet.ClusterName, "")...), o.env.Command("check", "agent")))
}

// onHub is a command for the hub, with its context if that is known.
func (o *options) onHub(args ...string) string {
	if !o.hub.oneShot() {
		return o.env.Elsewhere(args...)
	}
	return o.env.CommandAt(o.hub.admin, args...)
}

// render prints what a new agent consists of, without a managed cluster. The
// hub is contacted only to find a CA that is pinned by its hash. The address of the hub is in
// a Secret.
func (o *options) render(ctx context.Context, p plan) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	if p.oneShot {
		return cli.Usagef("--dry-run=client makes no token, so it needs --hub-token and --hub-apiserver instead of --hub-context, or --skip-secret alone")
	}
	if o.rendering.SkipSecrets {
		o.env.Say("The agent registers when its namespace has a Secret %s with a kubeconfig of the hub.", names.BootstrapHubKubeconfigSecret)
	} else if err := o.offline(ctx, &p); err != nil {
		return fleet.Explain(err)
	}
	objs, err := p.klusterlet.Render()
	if err != nil {
		return err
	}
	return o.rendering.Print(o.env, o.out, objs)
}

func (o *options) writeFile(k agent.Values) error {
	objs, err := k.Render()
	if err != nil {
		return err
	}
	return o.rendering.Write(objs)
}

// accepted reports whether the hub has accepted the cluster already.
func (h *hub) accepted(ctx context.Context, name string) bool {
	cluster := h.look(ctx, name)
	return cluster != nil && cluster.Spec.HubAcceptsClient
}

// look reads the cluster on the hub; nil when it is not there or not readable.
func (h *hub) look(ctx context.Context, name string) *clusterv1.ManagedCluster {
	if h.client == nil {
		return nil // the hub cannot be reached from here
	}
	cluster, err := h.read(ctx, name)
	if err != nil {
		return nil
	}
	return cluster
}

// read reads the cluster on a hub that can be reached from here.
func (h *hub) read(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	cluster := &clusterv1.ManagedCluster{}
	return cluster, h.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
}
