package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/approver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pemutil"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

// run joins the cluster that the connection flags name.
func (o *options) run(ctx context.Context, p join.Plan) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := o.runner()
	if err != nil {
		return err
	}
	joiner := &join.Joiner{
		Runner: runner, Connect: o.connect, Accept: o.accept, Program: o.env.Name, Observer: observer{o, runner},
	}
	if o.hub.oneShot() {
		if joiner.Admin, err = o.admin(); err != nil {
			return o.explain(err)
		}
	}
	result, err := joiner.Run(ctx, p)
	fleet.NoteApplied(o.changes, result.Changes)
	if token := result.Unrevoked; token.ID != "" {
		o.env.Say("The agent may still need the bootstrap token %s; it is valid until %s.", token.ID, token.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return o.explain(err)
	}
	return o.report(ctx, p, runner, result)
}

// connect returns a client for a hub.
func (o *options) connect(config *rest.Config) (client.Client, error) {
	return cli.NewClient(o.env.Kube.Guard(config))
}

// admin connects to the hub as its administrator.
func (o *options) admin() (*join.Admin, error) {
	c, config, err := o.env.Kube.Of(o.hub.admin).Connect()
	if err != nil {
		return nil, err
	}
	return &join.Admin{Client: c, Config: config, Name: o.hub.admin.Name, Init: o.env.CommandAt(o.hub.admin, "init")}, nil
}

// accept accepts the cluster as the hub's administrator, and says what is trusted.
func (o *options) accept(ctx context.Context, by *approval.Approver, cluster string) error {
	r := approver.New(o.env, by.Client, cli.Wait{Enabled: true, Timeout: o.wait.Timeout}, o.hub.admin)
	r.Own, r.Choice, r.Hub = by.Own, by.Choice, by.Hub
	_, err := r.One(ctx, cluster)
	return err
}

// report says how far the cluster is.
func (o *options) report(ctx context.Context, p join.Plan, runner agent.Runner, result join.Result) error {
	switch {
	case runner.DryRun:
		o.env.Say("The server would accept all of it; nothing was changed.")
		return nil
	case p.Until == join.Joined || o.hub.oneShot():
		return o.sayJoined(ctx, runner, result)
	case p.Until == join.KeyMade && result.Key != "":
		o.env.Say("The agent registers with the key %s.", result.Key)
	case p.Until == join.KeyMade && result.HasKey:
		o.env.Say("The key of the agent is shown by: %s", o.env.Command("check", "agent"))
	}
	return o.changes.Print(fmt.Sprintf(`Please log onto the hub cluster and run the following command:

    %s

This is not needed when the ManagedClusterAutoApproval feature is enabled`, o.onHub(result.Accept...)))
}

// sayJoined says which hub the cluster has joined, and how long its credentials are valid.
func (o *options) sayJoined(ctx context.Context, runner agent.Runner, result join.Result) error {
	if result.AutoAccepted != "" {
		o.env.Say("The hub accepted the cluster by itself at %s.", result.AutoAccepted)
	}
	installed, err := runner.Named(ctx, names.KlusterletName)
	if err != nil {
		return err
	}
	if certs, err := pemutil.ParseCertificates(installed.Data[names.KeyTLSCert]); err == nil {
		cert := certs[0]
		o.env.Say("The cluster's certificate is valid until %s (lifetime %s) and is renewed before.",
			cert.NotAfter.UTC().Format(time.RFC3339), credential.Lifetime(cert.NotAfter.Sub(cert.NotBefore)))
	}
	if life := installed.AddOnTokenLifetime(); life > 0 {
		o.env.Say("Tokens of add-ons have a lifetime of %s. Change it with: %s", credential.Lifetime(life),
			o.env.Command("addon-auth", "set", "--driver", "token", "--expiration-seconds", "SECONDS"))
	}
	return o.changes.Print(fmt.Sprintf("Cluster %s has joined the hub %s.", result.Cluster, result.Hub))
}

// explain says what to do about the errors of a join.
func (o *options) explain(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, o.explain(e))
		}
		return errors.Join(all...)
	}
	if wait, ok := errors.AsType[*join.WaitError](err); ok {
		return o.wait.TimedOut(err, wait.Waiting, fmt.Sprintf("on the hub: %s; here: %s", o.onHub(wait.Accept...), o.env.Command("check", "agent")))
	}
	if left, ok := errors.AsType[*join.DepartureError](err); ok {
		try := "to leave the first hub, add --change-hub"
		if left.Works > 0 {
			try = fmt.Sprintf("to keep the resources, run first: %s; %s", o.env.Command("unjoin", "--works", "orphan"), try)
		}
		return cli.Blockedf(try, "%v", left)
	}
	return fleet.Explain(err)
}

// onHub is a command for the hub, with its context if that is known.
func (o *options) onHub(args ...string) string {
	if !o.hub.oneShot() {
		return o.env.Elsewhere(args...)
	}
	return o.env.CommandAt(o.hub.admin, args...)
}

// observer prints what happens during a join.
type observer struct {
	o      *options
	runner agent.Runner
}

// Warn implements join.Observer.
func (b observer) Warn(format string, args ...any) { b.o.env.Warn(format, args...) }

// Review implements join.Observer.
func (b observer) Review(values agent.Values) error {
	objs, err := values.Render()
	if err != nil {
		return err
	}
	return b.o.rendering.Write(objs)
}

// Applied implements join.Observer.
func (b observer) Applied(ctx context.Context, changes apply.ChangeSet) error {
	switch {
	case b.o.rotate:
		return nil
	case changes.Changed():
		return b.o.sayWorkPermissions(ctx, b.runner)
	}
	b.o.env.Say("The agent is up to date; nothing was changed.")
	return nil
}

// Rotating implements join.Observer.
func (b observer) Rotating() {
	b.o.env.Say("The agent gives up its certificate. The cluster has no connection until the hub accepts the new key.")
}

// AwaitingAcceptance implements join.Observer.
func (b observer) AwaitingAcceptance(key string, args []string) {
	if key != "" {
		b.o.env.Say("The agent registers with the key %s.", key)
	}
	b.o.env.Say("On the hub, run:  %s", b.o.onHub(args...))
}

// render prints what a new agent consists of, without a managed cluster. The hub is
// contacted only to find a CA that is pinned by its hash. The address of the hub is in a
// Secret.
func (o *options) render(ctx context.Context, p join.Plan) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	if o.hub.oneShot() {
		return cli.Usagef("--dry-run=client makes no token, so it needs --hub-token and --hub-apiserver instead of --hub-context, or --skip-secret alone")
	}
	if o.rendering.SkipSecrets {
		o.env.Say("The agent registers when its namespace has a Secret %s with a kubeconfig of the hub.", names.BootstrapHubKubeconfigSecret)
	} else {
		var err error
		if p.Agent.Bootstrap, err = join.Unverified(ctx, p.Endpoint, p.Token); err != nil {
			return fleet.Explain(err)
		}
	}
	objs, err := p.Agent.Render()
	if err != nil {
		return err
	}
	return o.rendering.Print(o.env, o.out, objs)
}
