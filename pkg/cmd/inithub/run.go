package inithub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/bootstrap"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hubaddress"
)

// signerPatience is how long the self-test waits for a certificate. A signer
// that works takes less than a second.
const signerPatience = 10 * time.Second

func (o *options) run(ctx context.Context, h hub.Values) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	if o.env.Kube.DryRun() == cli.DryRunClient && h.TakeOver == nil {
		return o.render(h)
	}
	config, err := o.env.Kube.Config()
	if err != nil {
		return err
	}
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return err
	}
	runner.Skip, runner.Wait = o.preflight.Skipped(), o.wait.Enabled
	address, err := hubaddress.Find(ctx, o.env.Drivers, config, runner.Client, h.Server)
	if err != nil {
		return err
	}
	o.join.Warn(ctx, o.env, &address)
	info := bootstrap.ClusterInfo{Server: address.Server, CA: address.CA}
	if h.TakeOver != nil && o.env.Kube.DryRun() != cli.DryRunNone {
		return o.printTakeOver(ctx, runner, h, info)
	}
	replaced, err := o.install(ctx, runner, h, info)
	if err != nil {
		return err
	}
	if o.env.Kube.DryRun() == cli.DryRunServer {
		o.env.Say("The server would accept all of it; nothing was changed.")
		return nil
	}
	return o.finish(ctx, config, runner.Client, h.Server, replaced)
}

// printTakeOver prints how the hub would be taken over.
func (o *options) printTakeOver(ctx context.Context, runner *install.Runner, h hub.Values, info bootstrap.ClusterInfo) error {
	plan, err := hub.Runner{Runner: runner}.Plan(ctx, h, info)
	if err != nil {
		return err
	}
	return fleet.PrintTakeOver(o.env, o.out, plan)
}

// finish tests the hub and prints how clusters join it, or what it replaced.
func (o *options) finish(ctx context.Context, config *rest.Config, c client.Client, server, replaced string) error {
	// Now the hub says how clusters register.
	address, err := hubaddress.Find(ctx, o.env.Drivers, config, c, server)
	if err != nil {
		return err
	}
	if err := o.selfTest(ctx, c, address); err != nil {
		return err
	}
	if replaced != "" {
		return o.sayReplaced(replaced)
	}
	if o.out.Format == cli.Name && o.joinFile == "" {
		return nil // A token that nothing shows is of no use.
	}
	return o.printJoin(ctx, c, address)
}

// sayReplaced says what was replaced, and what is next.
func (o *options) sayReplaced(what string) error {
	o.env.Say("The agents of OCM keep working with this hub. Replace them one by one:")
	o.env.Say("    %s", o.env.Elsewhere("join --take-over"))
	return o.changes.Print(fmt.Sprintf("This release runs the hub, instead of %s.", what))
}

// install brings the hub to what the flags want, and returns what it replaced.
func (o *options) install(ctx context.Context, runner *install.Runner, h hub.Values, info bootstrap.ClusterInfo) (replaced string, err error) {
	objs, err := h.Render(info)
	if err != nil {
		return "", err
	}
	if err := o.rendering.Write(objs); err != nil {
		return "", err
	}
	outcome, err := hub.Runner{Runner: runner}.Init(ctx, h, info)
	fleet.NoteApplied(o.changes, outcome.Changes)
	if err != nil {
		waiting := install.Unmet(err)
		if waiting == "" {
			waiting = "the hub"
		}
		return "", o.wait.TimedOut(fleet.Explain(err), waiting, "see what is wrong with: "+o.env.Command("check hub"))
	}
	if !outcome.Changes.Changed() && o.env.Kube.DryRun() == cli.DryRunNone {
		o.env.Say("The hub is up to date; nothing was changed.")
	}
	return outcome.Replaced, nil
}

// render prints what a new hub consists of. It needs no cluster: where there is
// a kubeconfig, the address and CA are taken from it.
func (o *options) render(h hub.Values) error {
	var info bootstrap.ClusterInfo
	if config, err := o.env.Kube.Config(); err == nil {
		info = bootstrap.ClusterInfo{Server: config.Host, CA: config.CAData}
		if h.Server != "" {
			info.Server = h.Server
		}
	}
	objs, err := h.Render(info)
	if err != nil {
		return err
	}
	return o.rendering.Print(o.env, o.out, objs)
}

// selfTest asks the hub for a worthless certificate, unless clusters register in
// other ways only. What it finds never fails init: the hub works for clusters that
// register in another way.
func (o *options) selfTest(ctx context.Context, c client.Client, address hubaddress.Address) error {
	if _, only := driver.Identifying(address.Drivers); only {
		return nil
	}
	var noSigner *hub.NoSignerError
	err := o.env.Progress().Step(ctx, "Testing whether the hub signs client certificates", func(ctx context.Context, _ cli.Say) error {
		err := hub.SelfTest(ctx, c, o.env.Clock, signerPatience)
		if errors.As(err, &noSigner) {
			return nil
		}
		return err
	})
	switch {
	case noSigner != nil:
		o.env.Warn("%v.", noSigner)
		o.adviseSigner(address)
	case ctx.Err() != nil:
		return err
	case err != nil:
		o.env.Warn("the test was not possible: %v", err)
	}
	return nil
}

// adviseSigner says what to do about a hub that signs no client certificates.
func (o *options) adviseSigner(address hubaddress.Address) {
	o.env.Say("  This hub signs no client certificates, and the csr driver needs them: the")
	o.env.Say("  signer is kubernetes.io/kube-apiserver-client.")
	identifying, _ := driver.Identifying(address.Drivers)
	for _, by := range identifying {
		words := by.Words()
		o.env.Say("  %s can register by %s, others cannot. To leave out csr, run:", words.Clusters, words.Way)
		o.env.Say("    %s", o.env.Command(append([]string{"init"}, by.InitArgs(by.Settings)...)...))
	}
	if len(identifying) > 0 {
		return
	}
	for _, by := range o.env.Drivers.Identifiers() {
		words := by.Words()
		o.env.Say("  %[1]s has none. On %[1]s, let clusters register by %[2]s:", words.Place, words.Way)
		o.env.Say("    %s", o.env.Command(append([]string{"init"}, by.InitArgs(driver.HubSettings{})...)...))
	}
	o.env.Say("  Elsewhere give kube-controller-manager --cluster-signing-cert-file and")
	o.env.Say("  --cluster-signing-key-file, or make another cluster the hub.")
}

func (o *options) printJoin(ctx context.Context, c client.Client, address hubaddress.Address) error {
	if o.noToken {
		o.env.Say("When a cluster is to join, print the command with: %s", o.env.Command("get token"))
		return o.changes.Print(o.seen())
	}
	address.Probe(ctx)
	token, err := o.join.Token(ctx, o.env, c)
	if err != nil {
		return err
	}
	command := fleet.JoinCommand{Name: o.env.Name, Token: token.Secret(), Hub: address, Wait: o.wait.Enabled}
	if o.joinFile != "" {
		script := command
		script.Cluster = "$1"
		if err := cli.WriteSecretFile(o.joinFile, []byte(script.String()+"\n")); err != nil {
			return err
		}
	}
	if o.out.Machine() {
		return o.out.Object(o.env.Out, cli.Header{Kind: fleet.JoinInfoKind}, command.Info(token))
	}
	err = o.changes.Print(fmt.Sprintf(`%s

You can now register cluster(s) to the hub control plane. Log onto those cluster(s) and run the following command:

    %s

Replace <cluster_name> with a cluster name of your choice. For example, cluster1.`, o.seen(), command))
	if !token.Expires.IsZero() {
		o.env.Say("The token is valid until %s. Create another with: %s", token.Expires.UTC().Format(time.RFC3339), o.env.Command("get token"))
	}
	o.adviseIdentities(address)
	return err
}

// adviseIdentities says what is to be done at providers of identities, and by clusters that
// register by them.
func (o *options) adviseIdentities(address hubaddress.Address) {
	identifying, only := driver.Identifying(address.Drivers)
	for _, by := range identifying {
		if !only {
			words := by.Words()
			o.env.Say("%s register by %s if the command has these flags, too:", words.Clusters, words.Way)
			o.env.Say("    %s", strings.Join(by.JoinArgs(by.Settings), " "))
		}
		need, args := by.Prepare(by.Settings)
		o.env.Say("%s Print it with:", need)
		o.env.Say("    %s", o.env.Elsewhere(args...))
	}
}

// seen says how far the hub is, as far as the command has looked.
func (o *options) seen() string {
	if o.wait.Enabled {
		return "The multicluster hub control plane has been initialized successfully!"
	}
	return "The hub operator is installed; it starts the multicluster hub control plane. Check it with: " + o.env.Command("check hub")
}
