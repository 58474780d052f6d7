package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/truststore"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
)

type explainOptions struct {
	env   cli.Env
	out   *cli.Output
	store truststore.Flags
}

func newExplain(env cli.Env) *cobra.Command {
	o := &explainOptions{env: env, out: cli.NewOutput(cli.Text, cli.JSON, cli.YAML, cli.JSONPath)}
	cmd := &cobra.Command{
		Use:   "explain -|FILE",
		Short: "Say what the token authorizer would make of a token, and why",
		Long: `Say what the token authorizer would make of a token, and why: which cluster it
is from, each check and its outcome, which rule decides, and what ServiceAccount
of the hub it becomes.

The token comes from a file, or from the standard input, never from an argument,
which others on this machine could see; it is not sent anywhere. Nothing is
exchanged. By default the configuration and the clusters' keys are read from the
hub. With --clusters-config the hub is not needed, and nothing is asked over the
network unless the file names keys by URL.

It exits with 3 when the token would be refused.`,
		Example: fmt.Sprintf(`  # The token of a ServiceAccount, against the hub's configuration
  kubectl --context cluster1 -n app create token web --audience HUB |
      %[1]s exchange explain --context hub -

  # A token file, against a configuration file
  %[1]s exchange explain token.jwt --clusters-config clusters.yaml`, env.Name),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.store.AddTo(cmd)
	o.out.AddTo(cmd)
	return cmd
}

func (o *explainOptions) run(ctx context.Context, from string) error {
	token, err := o.token(from)
	if err != nil {
		return err
	}
	k, err := o.known(ctx)
	if err != nil {
		return err
	}
	e := o.explain(ctx, k, token)
	if e.err == nil && k.store.Hub() != nil {
		if err := e.target(ctx, k.store, k.config); err != nil {
			return err
		}
	}
	return o.tell(e, k.store)
}

// known is what a token authorizer with the same configuration knows.
type known struct {
	store  *truststore.Store
	config *config.Config
	keys   *jwks.Store
}

// known reads it.
func (o *explainOptions) known(ctx context.Context) (*known, error) {
	store, err := o.store.Open(o.env)
	if err != nil {
		return nil, err
	}
	k := &known{store: store}
	if k.config, err = store.Config(ctx, store.Options()); err != nil {
		return nil, err
	}
	k.keys, err = o.keys(ctx, store, k.config)
	return k, err
}

// token reads the token and refuses one that stands on the command line.
func (o *explainOptions) token(from string) (string, error) {
	if _, err := os.Stat(from); from != "-" && errors.Is(err, fs.ErrNotExist) {
		if strings.Count(from, ".") == 2 && strings.HasPrefix(from, "ey") {
			return "", &cli.Explained{
				Problem: "a token is not taken as an argument, where others can see it", Code: cli.CodeUsage,
				Try: "pipe it in, and name the argument -",
			}
		}
		return "", cli.NotFoundf("name a file with a token, or - for the standard input", "there is no file %s", from)
	}
	token, err := o.env.ReadSecret(from)
	if err != nil {
		return "", err
	}
	if scheme, rest, ok := strings.Cut(token, " "); ok && strings.EqualFold(scheme, "bearer") {
		token = strings.TrimSpace(rest)
	}
	if token == "" {
		return "", cli.Usagef("%s holds no token", from)
	}
	return token, nil
}

// patience is how long a server of keys may take.
const patience = 10 * time.Second

// keys returns the keys of the configuration, and of the hub if there is one.
func (o *explainOptions) keys(ctx context.Context, store *truststore.Store, cfg *config.Config) (*jwks.Store, error) {
	clusters := cfg.Keys()
	if _, ok := cfg.Cluster(policy.AnyCluster); !ok && store.Hub() != nil {
		// The authorizer knows the keys of a cluster without an entry, too.
		clusters = append(clusters, jwks.Cluster{Name: jwks.Everyone, Source: jwks.Source{Hub: true}})
	}
	keys := jwks.New(jwks.Config{Clock: o.env.Clock})
	if err := keys.Configure(clusters); err != nil {
		return nil, err
	}
	if store.Hub() == nil {
		for _, c := range clusters {
			if c.Source.Hub {
				o.env.Warn("The keys that %s publishes are on the hub, which is not asked because of --clusters-config.", who(c.Name))
			}
		}
		return keys, nil
	}
	published, err := truststore.Published(ctx, store.Hub())
	if err != nil {
		return nil, err
	}
	for _, p := range published {
		if p.Distrusted != "" {
			o.env.Warn("Cluster %s publishes keys that are not taken: %s.", p.Cluster, p.Distrusted)
			continue
		}
		if err := keys.Publish(p.Cluster, p.Issuer, p.JWKS); err != nil {
			o.env.Warn("%v.", err)
		}
	}
	return keys, nil
}

func who(cluster string) string {
	if cluster == policy.AnyCluster {
		return "each other cluster"
	}
	return "cluster " + cluster
}

// explain takes the way of a request, as far as it goes without the hub.
func (o *explainOptions) explain(ctx context.Context, k *known, token string) *explanation {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := &explanation{}
	verifier := subject.NewVerifier(k.keys, func(cluster string) *subject.Rules {
		if c, ok := k.config.Cluster(cluster); ok {
			return &c.Token
		}
		return nil
	}, o.env.Clock)
	id, err := verifier.Explain(ctx, token, e.check)
	e.identify(id)
	if err != nil {
		e.refuse(err)
		return e
	}
	c, _ := k.config.Cluster(id.Cluster)
	for _, considered := range c.Policy.Consider(id) {
		e.rule(considered)
	}
	grant, err := c.Policy.Decide(id)
	if err != nil {
		e.step("policy", err, "")
		e.refuse(err)
		return e
	}
	e.grant(grant)
	e.reviewed(c.Review.Mode)
	return e
}

// tell prints the explanation; a refusal is an error as well.
func (o *explainOptions) tell(e *explanation, store *truststore.Store) error {
	var err error
	if o.out.Machine() {
		err = o.out.Object(o.env.Out, e)
	} else {
		err = e.print(o.env.Out)
	}
	if err != nil || e.Allowed {
		return err
	}
	return cli.Blockedf(o.remedy(e, store), "the token would be refused: %s", e.Reason)
}

// remedy says what to do about a refusal.
func (o *explainOptions) remedy(e *explanation, store *truststore.Store) string {
	name, again := o.env.Name, o.store.Again()
	switch verdict.Reason(e.Reason) {
	case verdict.UnknownIssuer, verdict.UnknownKey, verdict.KeysUnavailable:
		return "see whose keys are known: " + name + " issuer list" + again
	case verdict.WrongAudience:
		return "ask for the token with another audience: kubectl create token ... --audience AUDIENCE"
	case verdict.NotAllowed:
		account := "NAMESPACE/NAME"
		if e.Workload != nil {
			account = e.Workload.Namespace + "/" + e.Workload.Name
		}
		return fmt.Sprintf("allow it: %s exchange allow %s %s --to NAMESPACE/NAME%s", name, e.Cluster, account, again)
	case verdict.TargetMissing:
		return fmt.Sprintf("create it on the hub: kubectl create serviceaccount -n %s %s", e.Target.Namespace, e.Target.Name)
	case verdict.HubForbidden:
		return fmt.Sprintf("grant it: %s exchange rbac%s | kubectl apply -f -", name, again)
	case verdict.LegacyToken:
		return "use a bound token, or set acceptLegacyTokens for the cluster in " + store.String()
	default:
		return ""
	}
}
