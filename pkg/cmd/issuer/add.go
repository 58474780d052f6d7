package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

type addOptions struct {
	changes *cli.Changes
	env     cli.Env
	rules   rules.Flags
	force   bool
	cluster string
	// account is the ServiceAccount whose token the keys are tried on.
	account string
	given   given
}

// given is an issuer that the flags describe completely.
type given struct {
	issuer    string
	jwksFile  string
	jwksURI   string
	discovery bool
	caFile    string
}

func newAdd(env cli.Env) *cobra.Command {
	o := &addOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "add CLUSTER",
		Short: "Trust the tokens of a cluster whose agent does not publish its keys",
		Long: `Add a cluster's issuer and keys to its TokenExchangePolicy on the hub. This
gives no rights; exchange allow does.

Without --issuer they are read from the cluster that --context names, once, and
tried on a token that the cluster makes; the hub is then --hub-context, or the
kubeconfig's current context. Keys that were read once end with the cluster's
next key rotation. Where a provider serves the keys, take them from there: the
command reads them once, and the token authorizer again as they change.`,
		Example: fmt.Sprintf(`  # Read the cluster's own issuer and keys
  %[1]s issuer add cluster1 --context cluster1 --hub-context hub

  # A cluster whose provider rotates the keys
  %[1]s issuer add cluster2 --discovery \
      --issuer https://oidc.eks.us-east-1.amazonaws.com/id/EXAMPLE`, env.Name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.cluster = args[0]
			if err := o.complete(); err != nil {
				return err
			}
			return o.changes.End(o.run(cmd.Context()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.rules.Hub.Name, "hub-context", "", "kubeconfig context of the hub (default the current one)")
	f.StringVar(&o.rules.Hub.Kubeconfig, "hub-kubeconfig", "", "kubeconfig file of the hub, if it is another one")
	f.StringVar(&o.account, "service-account", "default/default", "ServiceAccount of the cluster whose token the keys are tried on, as NAMESPACE/NAME; empty for no test")
	f.StringVar(&o.given.issuer, "issuer", "", "the exact issuer of the cluster's tokens; the cluster is not asked then")
	f.StringVar(&o.given.jwksFile, "jwks-file", "", "file with the JSON Web Key Set of --issuer, which is copied")
	f.StringVar(&o.given.jwksURI, "jwks-uri", "", "https URL of the JSON Web Key Set of --issuer")
	f.BoolVar(&o.given.discovery, "discovery", false, "find the keys through the OpenID Connect discovery of --issuer")
	f.StringVar(&o.given.caFile, "issuer-ca-file", "", "file with the CA certificate of --jwks-uri or --discovery")
	cmd.MarkFlagsMutuallyExclusive("jwks-file", "jwks-uri", "discovery")
	f.BoolVar(&o.force, "force-conflicts", false, "take the issuer and keys over from another field manager")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *addOptions) complete() error {
	if err := o.given.validate(); err != nil {
		return err
	}
	if _, ok := cli.NamespacedName(o.account); o.account != "" && !ok {
		return cli.Usagef("--service-account: %q is not NAMESPACE/NAME", o.account)
	}
	if o.given.issuer != "" || o.rules.Hub != (cli.Context{}) {
		return nil
	}
	// The connection flags name the managed cluster, so the hub is elsewhere.
	raw, err := o.env.Kube.Loader().RawConfig()
	if err != nil {
		return err
	}
	chosen, _ := o.env.Kube.Target()
	if raw.CurrentContext == "" || raw.CurrentContext == chosen {
		return cli.Usagef("name the hub with --hub-context: the context %q is read as the managed cluster", chosen)
	}
	o.rules.Hub.Name = raw.CurrentContext
	o.env.Say("The hub is the current context, %s.", raw.CurrentContext)
	return nil
}

// sourced reports whether it is said where the keys are.
func (g *given) sourced() bool { return g.jwksFile != "" || g.jwksURI != "" || g.discovery }

func (g *given) validate() error {
	if g.issuer == "" && (g.sourced() || g.caFile != "") {
		return cli.Usagef("--jwks-file, --jwks-uri, --discovery and --issuer-ca-file need --issuer")
	}
	if g.issuer != "" && !g.sourced() {
		return cli.Usagef("--issuer needs --jwks-file, --jwks-uri or --discovery")
	}
	switch {
	case g.jwksURI != "" && !secure(g.jwksURI):
		return cli.Usagef("--jwks-uri: %q is no https URL", g.jwksURI)
	case g.discovery && !secure(g.issuer):
		return cli.Usagef("--discovery needs an issuer that is an https URL; use --jwks-file or --jwks-uri")
	case g.caFile != "" && g.jwksFile != "":
		return cli.Usagef("--issuer-ca-file is about a server: it has no meaning with --jwks-file")
	}
	return nil
}

func secure(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

func (o *addOptions) run(ctx context.Context) error {
	issuer, keys, err := o.trust(ctx)
	if err != nil {
		return err
	}
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return err
	}
	source.ForceConflicts = o.force
	change, err := source.SetIssuer(ctx, o.cluster, issuer, keys)
	if err != nil {
		return rules.Explain(o.env, err)
	}
	if !change.Changed() {
		return o.changes.AddLine(rules.Ref(change), cli.Unchanged, "cluster "+o.cluster+" unchanged")
	}
	if err := o.changes.AddLine(rules.Ref(change), "configured", "cluster "+o.cluster+" added to the token exchange"); err != nil {
		return err
	}
	o.env.Say("Its workloads may do nothing yet. Allow some with: %s", o.env.Command("exchange allow", o.cluster, "NAMESPACE/NAME --to ..."))
	return nil
}

// trust is the issuer with its keys.
func (o *addOptions) trust(ctx context.Context) (string, *v1alpha1.Keys, error) {
	if o.given.issuer != "" {
		keys, err := o.given.keys()
		if err == nil {
			err = o.try(ctx, keys)
		}
		return o.given.issuer, keys, err
	}
	issuer, err := o.read(ctx)
	if err != nil {
		return "", nil, o.explain(err)
	}
	set, err := keySet(issuer.KeySet.JSON)
	if err != nil {
		return "", nil, err
	}
	o.env.Say("Read issuer %s with %d key(s).", issuer.Name, len(issuer.KeySet.Keys))
	o.env.Warn("these keys end with the cluster's next key rotation: a joined cluster keeps them up to date with %s", o.env.Elsewhere("issuer publish"))
	return issuer.Name, &v1alpha1.Keys{JWKS: set}, nil
}

// keySet is a key set as the API has it: members that verify nothing are left out.
func keySet(data []byte) (*v1alpha1.KeySet, error) {
	out := &v1alpha1.KeySet{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	return out, nil
}

func (g *given) keys() (*v1alpha1.Keys, error) {
	keys := &v1alpha1.Keys{JWKSURI: g.jwksURI}
	if g.discovery {
		keys.Discovery = &v1alpha1.Discovery{}
	}
	if g.caFile != "" {
		ca, err := cli.ReadFile(g.caFile)
		if err != nil {
			return nil, cli.Usagef("--issuer-ca-file: %v", err)
		}
		keys.CA = string(ca)
	}
	if g.jwksFile == "" {
		return keys, nil
	}
	data, err := cli.ReadFile(g.jwksFile)
	if err != nil {
		return nil, cli.Usagef("--jwks-file: %v", err)
	}
	set, err := publish.Canonical(data)
	if err != nil {
		return nil, cli.Usagef("--jwks-file: %s: %v", g.jwksFile, err)
	}
	keys.JWKS, err = keySet(set.JSON)
	return keys, err
}

// try reads keys that a server serves. What it answers now it would answer to the token
// authorizer too.
func (o *addOptions) try(ctx context.Context, keys *v1alpha1.Keys) error {
	if keys.JWKS != nil {
		return nil
	}
	source := jwks.Source{URI: keys.JWKSURI, CA: []byte(keys.CA)}
	if keys.Discovery != nil {
		source.Discovery = &jwks.Discovery{}
	}
	var set jwk.Set
	err := o.env.Progress().Step(ctx, "Reading the keys", func(ctx context.Context, _ cli.Say) (err error) {
		set, err = jwks.Try(ctx, jwks.Cluster{Name: o.cluster, Issuer: o.given.issuer, Source: source})
		if jwks.Unreachable(err) {
			o.env.Warn("the keys cannot be read from this machine: %v. The token authorizer has to reach them; see what it says with: %s",
				err, o.rules.Command(o.env, "issuer list"))
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return cli.Blockedf("correct --issuer, --jwks-uri or --issuer-ca-file", "the keys of cluster %s cannot be read: %v", o.cluster, err)
	case len(set.Keys) > 0:
		o.env.Say("Read %d key(s) of issuer %s.", len(set.Keys), o.given.issuer)
	}
	return nil
}

// read asks the cluster, with a self-test where that is possible.
func (o *addOptions) read(ctx context.Context) (publish.Issuer, error) {
	config, err := o.env.Kube.Config()
	if err != nil {
		return publish.Issuer{}, err
	}
	account, _ := cli.NamespacedName(o.account)
	if o.env.Kube.DryRun() != cli.DryRunNone {
		account = types.NamespacedName{} // A dry run requests no token either.
	}
	source, err := publish.NewSource(config, account)
	if err != nil {
		return publish.Issuer{}, err
	}
	issuer, err := source.Read(ctx)
	if account.Name != "" && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		source.Account = types.NamespacedName{}
		untested, again := source.Read(ctx)
		if again == nil {
			o.env.Warn("the keys were not tried on a token, because none can be had: %v", err)
		}
		return untested, again
	}
	return issuer, err
}

func (o *addOptions) explain(err error) error {
	switch {
	case errors.Is(err, publish.ErrSelfTest), errors.Is(err, publish.ErrNotServed), errors.Is(err, publish.ErrUnusable):
		return &cli.Explained{
			Problem: "the keys of cluster " + o.cluster + " cannot be taken from its API server", Cause: err, Code: cli.CodeBlocked,
			Try: "take them from where the tokens say they are: " + o.env.Command("issuer add", o.cluster, "--issuer URL --discovery"),
		}
	}
	return err
}
