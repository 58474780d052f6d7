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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

type explainOptions struct {
	env   cli.Env
	out   *cli.Output
	rules rules.Flags
}

func newExplain(env cli.Env) *cobra.Command {
	o := &explainOptions{env: env, out: cli.NewOutput(cli.Text)}
	cmd := &cobra.Command{
		Use:   "explain -|FILE",
		Short: "Explain how the token authorizer evaluates a token",
		Long: `Say what the token authorizer would make of a token, and why: which cluster it
is from, each check and its outcome, which rule decides, and what ServiceAccount
of the hub it becomes.

The token comes from a file, or from the standard input, never from an argument,
which others on this machine could see; it is not sent anywhere. Nothing is
exchanged. By default the rules and the clusters' keys are read from the hub.
With --clusters-config the hub is not needed, and nothing is requested over the
network unless the file names keys by URL.

It exits with 3 when the token would be refused.`,
		Example: fmt.Sprintf(`  # The token of a ServiceAccount, against the rules on the hub
  kubectl --context cluster1 -n app create token web --audience HUB |
      %[1]s exchange explain --context hub -

  # A token file, against a configuration file
  %[1]s exchange explain token.jwt --clusters-config clusters.yaml`, env.Name),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.rules.AddTo(cmd)
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
	e := o.explain(ctx, k, token, k.dry)
	return o.report(e, k.source)
}

// known is what a token authorizer with the same rules knows.
type known struct {
	source *rules.Source
	config *config.Config
	trial  *tokenauthorizer.Trial

	// explaining is what the chain is gone through for, and exchange stands for the
	// exchange in it.
	explaining *explanation
	exchange   exchanging
}

// exchanging is what becomes of a request that the rules allow.
type exchanging func(ctx context.Context, e *explanation, r mint.Request) (mint.Token, error)

// Mint implements authorizer.Minter.
func (k *known) Mint(ctx context.Context, r mint.Request) (mint.Token, bool, error) {
	token, err := k.exchange(ctx, k.explaining, r)
	return token, false, err
}

// Review implements authorizer.Reviewer: a token is not sent anywhere.
func (k *known) Review(_ context.Context, cluster, _ string, _ subject.Identity) error {
	if c, ok := k.config.Cluster(cluster); ok {
		k.explaining.skip("review", fmt.Sprintf("the authorizer also asks the cluster (%s); that is not done here", c.Review.Mode))
	}
	return nil
}

// dry checks what the exchange needs on the hub, without making one.
func (k *known) dry(ctx context.Context, e *explanation, r mint.Request) (mint.Token, error) {
	if k.source.Hub() == nil {
		return mint.Token{}, nil
	}
	return mint.Token{}, e.target(ctx, k.source, r.Target)
}

// known reads it.
func (o *explainOptions) known(ctx context.Context) (*known, error) {
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return nil, err
	}
	k := &known{source: source}
	if k.config, err = source.Config(ctx, source.Options()); err != nil {
		return nil, err
	}
	keys := jwks.New(jwks.Config{Clock: o.env.Clock})
	k.trial, err = tokenauthorizer.NewTrial(tokenauthorizer.TrialConfig{
		Config: k.config, Keys: keys, FromHub: source.Hub() != nil, Minter: k, Reviewer: k, Clock: o.env.Clock,
	})
	if err != nil {
		return nil, err
	}
	return k, o.publish(ctx, source, keys)
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

// publish brings what clusters publish on the hub, if there is one.
func (o *explainOptions) publish(ctx context.Context, source *rules.Source, keys *jwks.Store) error {
	if source.Hub() == nil {
		return nil
	}
	fleet, err := issuers.Candidates(ctx, source.Hub())
	if err != nil {
		return err
	}
	for _, candidate := range fleet {
		silent := candidate.Cluster.Silent()
		err := keys.Observe(candidate)
		switch {
		case candidate.Data == nil:
		case silent.Reason != "":
			o.env.Warn("Cluster %s publishes keys that do not count: %s.", candidate.Cluster.Name, silent.Message)
		case err != nil:
			o.env.Warn("%v.", err)
		}
	}
	keys.HubSynced()
	return nil
}

// explain takes the token authorizer's own chain, with something else for the
// exchange at its end.
func (o *explainOptions) explain(ctx context.Context, k *known, token string, do exchanging) *explanation {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := &explanation{}
	k.explaining, k.exchange = e, do
	decision, err := k.trial.Explain(ctx, token, e)
	e.identify(decision.Identity)
	if err != nil {
		e.refuse(err)
		e.last(err)
		return e
	}
	e.Allowed, e.issued = true, decision.Token
	return e
}

// report prints the explanation; a denial is an error as well.
func (o *explainOptions) report(e *explanation, source *rules.Source) error {
	var err error
	if o.out.Machine() {
		err = o.out.Object(o.env.Out, cli.Header{Kind: explanationKind}, e)
	} else {
		err = e.print(o.env.Out)
	}
	if err != nil || e.Allowed {
		return err
	}
	return cli.Blockedf(o.remedy(e, source), "the token would be refused: %s", e.Reason)
}

// remedy says what to do about a denial.
func (o *explainOptions) remedy(e *explanation, source *rules.Source) string {
	switch denial.Reason(e.Reason) {
	case denial.UnknownIssuer, denial.UnknownKey, denial.KeysUnavailable:
		return "see whose keys are known: " + o.rules.Command(o.env, "issuer list")
	case denial.WrongAudience:
		return "request the token for an audience of the cluster's rules, with --audience"
	case denial.NotAllowed:
		account := "NAMESPACE/NAME"
		if e.Workload != nil {
			account = e.Workload.Namespace + "/" + e.Workload.Name
		}
		if o.rules.File != "" {
			return "add a rule to " + source.String()
		}
		return "allow it: " + o.env.Command("exchange allow", e.Cluster, account, "--to NAMESPACE/NAME")
	case denial.TargetMissing:
		return "create it on the hub: " + o.env.Kubectl("create serviceaccount -n", e.Target.Namespace, e.Target.Name)
	case denial.HubForbidden:
		return "grant it: " + o.rules.Command(o.env, "exchange rbac") + " | " + o.env.Kubectl("apply -f -")
	case denial.LegacyToken:
		return "use a bound token, or set acceptLegacyTokens for the cluster in " + source.String()
	default:
		return ""
	}
}
