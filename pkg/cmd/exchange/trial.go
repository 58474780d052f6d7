package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/exchangetest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/explanation"
)

// trial is one call of "exchange test".
type trial struct {
	env cli.Env
	hub cli.Context
	// chain has the hub's environment.
	chain   explainOptions
	account string
	// as is what --service-account was called, which is kubectl's flag for another thing.
	as       string
	audience string
	server   string
	caFile   string
}

func newTest(env cli.Env) *cobra.Command {
	t := &trial{env: env, chain: explainOptions{out: cli.NewOutput(cli.Text)}}
	cmd := &cobra.Command{
		Use:   "test --service-account NAMESPACE/NAME",
		Short: "Test an exchange with a token of a workload",
		Long: `Try an exchange. A token is minted for a ServiceAccount of a managed cluster and
goes through the same chain as in the token authorizer, with the rules and the
keys that the hub has; then the hub is asked whose token came out. Each
step is printed, and none is made after one that failed.

The chain runs here, under the name of the token authorizer's ServiceAccount, so
that missing permissions show. With --server, a running token authorizer is
asked instead, as a proxy would ask it.

--context is the managed cluster; the hub is the kubeconfig's current context
unless --hub-context names it. It exits with 3 when the exchange is refused.`,
		Example: fmt.Sprintf(`  %[1]s exchange test --context cluster1 --hub-context hub \\
      --service-account app/web

  # Through a running token authorizer
  %[1]s exchange test --context cluster1 --service-account app/web \
      --server https://token-authorizer.example.com:9002 --ca-file ca.crt`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&t.account, "service-account", "", "the workload's ServiceAccount on the managed cluster, as NAMESPACE/NAME")
	flags.StringVar(&t.as, "as", "", "deprecated: use --service-account")
	flags.Lookup("as").Hidden = true
	cmd.MarkFlagsMutuallyExclusive("service-account", "as")
	flags.StringVar(&t.hub.Name, "hub-context", "", "kubeconfig context of the hub; the current one if not given")
	flags.StringVar(&t.hub.Kubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, if it is another one")
	flags.StringVar(&t.audience, "audience", "", "audience of the minted token; the first that the configuration demands if not given")
	flags.StringVar(&t.server, "server", "", "URL of a running token authorizer's HTTP endpoint, to ask it")
	flags.StringVar(&t.caFile, "ca-file", "", "PEM bundle that verifies --server; the system's roots if not given")
	t.chain.rules.AddTo(cmd)
	t.chain.out.AddTo(cmd)
	return cmd
}

func (t *trial) run(ctx context.Context) error {
	if err := t.complete(); err != nil {
		return err
	}
	t.chain.env = t.env
	t.chain.env.Kube = t.env.Kube.At(t.hub)
	managed, err := t.env.Kube.Config()
	if err != nil {
		return err
	}
	hub, err := t.chain.env.Kube.Config()
	if err != nil {
		return err
	}
	account, _ := cli.NamespacedName(t.account)
	test := exchangetest.New(account, managed, hub, cli.NewClient)
	err = t.steps(ctx, test, hub)
	if len(test.Trace.Steps) == 0 {
		return err
	}
	return errors.Join(t.print(test.Trace), err)
}

func (t *trial) complete() error {
	var problems []error
	if t.as != "" {
		t.env.Warn("--as is deprecated, because it impersonates with other commands: use --service-account")
		t.account = t.as
	}
	if _, ok := cli.NamespacedName(t.account); !ok {
		problems = append(problems, cli.Usagef("--service-account: %q is not the NAMESPACE/NAME of a ServiceAccount of the managed cluster", t.account))
	}
	if _, managed := t.env.Kube.Target(); t.hub.Kubeconfig == "" {
		if _, hub := t.env.Kube.At(t.hub).Target(); managed == hub {
			problems = append(problems, cli.Usagef("the managed cluster and the hub are the same: name the one with --context and the other with --hub-context"))
		}
	}
	if t.server != "" && !strings.HasPrefix(t.server, "https://") {
		problems = append(problems, cli.Usagef("--server must be an https:// URL: a token is not sent in the clear"))
	}
	return errors.Join(problems...)
}

// steps makes the steps, up to the first that fails.
func (t *trial) steps(ctx context.Context, test *exchangetest.Test, hub *rest.Config) error {
	var chain *explanation.Chain
	if t.server == "" || t.audience == "" { // Otherwise the running token authorizer has all rules.
		var err error
		if chain, err = t.chain.chain(ctx); err != nil {
			return err
		}
	}
	issued, err := t.exchange(ctx, test, chain)
	if err != nil {
		return t.explain(err, test, chain)
	}
	return test.WhoAmI(ctx, t.env.Kube.Guard(rest.AnonymousClientConfig(hub)), issued)
}

// exchange returns the token that the hub issues for one of the workload.
func (t *trial) exchange(ctx context.Context, test *exchangetest.Test, chain *explanation.Chain) (string, error) {
	audience := t.audience
	if audience == "" {
		var err error
		if audience, err = test.Audience(ctx, chain); err != nil {
			return "", err
		}
	}
	token, err := test.SubjectToken(ctx, audience)
	if err != nil {
		return "", err
	}
	if t.server == "" {
		return test.Exchange(ctx, chain, t.env.Clock, token)
	}
	client, err := verifying(t.caFile)
	if err != nil {
		return "", err
	}
	return test.Ask(ctx, t.server, client, token)
}

// explain maps an error of a test to its exit code and the next step.
func (t *trial) explain(err error, test *exchangetest.Test, chain *explanation.Chain) error {
	if missing, ok := errors.AsType[*exchangetest.NoAccountError](err); ok {
		return cli.NotFoundf("name one that exists with --service-account", "%v", missing)
	}
	if denied, ok := errors.AsType[*exchangetest.DeniedError](err); ok {
		return cli.Blockedf(t.chain.remedy(test.Trace, chain.Store()), "%v", denied)
	}
	if forbidden, ok := errors.AsType[*exchangetest.ImpersonationError](err); ok {
		return cli.Blockedf("ask a running token authorizer with --server, or use a context of the hub that has the right", "%v", forbidden)
	}
	if invalid, ok := errors.AsType[*exchangetest.AddressError](err); ok {
		return cli.Usagef("--server: %v", invalid)
	}
	if answer, ok := errors.AsType[*exchangetest.AnswerError](err); ok {
		return cli.Blockedf("its audit log has the reason; so has this command without --server, if the configuration is the same", "%v", answer)
	}
	return cli.Explain(err)
}

// print prints the steps.
func (t *trial) print(e *explanation.Explanation) error {
	if t.chain.out.Machine() {
		return t.chain.out.Object(t.env.Out, cli.Header{Kind: explanationKind}, e)
	}
	_, err := fmt.Fprint(t.env.Out, table(e))
	return err
}
