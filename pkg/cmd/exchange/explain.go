package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/rulestore"
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
	chain, err := o.chain(ctx)
	if err != nil {
		return err
	}
	return o.report(chain.Explain(ctx, token), chain.Store())
}

// chain returns that of a token authorizer with the rules that the flags choose.
func (o *explainOptions) chain(ctx context.Context) (*explanation.Chain, error) {
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return nil, err
	}
	chain, err := explanation.NewChain(ctx, source.Store, o.env.Clock, o.env.Warn)
	return chain, rules.Explain(o.env, err)
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

// report prints the explanation; a denial is an error as well.
func (o *explainOptions) report(e *explanation.Explanation, source *rulestore.Store) error {
	var err error
	if o.out.Machine() {
		err = o.out.Object(o.env.Out, cli.Header{Kind: explanationKind}, e)
	} else {
		err = printExplanation(o.env.Out, e)
	}
	if err != nil || e.Allowed {
		return err
	}
	return cli.Blockedf(o.remedy(e, source), "the token would be refused: %s", e.Reason)
}

// remedy says what to do about a denial.
func (o *explainOptions) remedy(e *explanation.Explanation, source *rulestore.Store) string {
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
