package check

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/diagnose/tokens"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/finding"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

func newTokens(env cli.Env) *cobra.Command {
	var flags rules.Flags
	self := names.HubNamespace + "/" + names.TokenAuthorizer
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Check how workload tokens are trusted and exchanged, on the hub",
		Long: `Check, on the hub, the way of workloads' tokens: which clusters publish their
keys, whether they are trusted, whether the token authorizer runs, what is risky
about its rules, and whether it may issue what they lead to. It only reads.

With --clusters-config it checks the file of a token authorizer that runs
elsewhere against this hub: the rules, and whether --service-account may issue
what they lead to.`,
	}
	cmd.Flags().StringVar(&self, "service-account", self, "ServiceAccount of the token authorizer, as NAMESPACE/NAME")
	flags.AddTo(cmd)
	return newCheck(env, cmd, func(_ context.Context, s diagnose.Scope, _ []string) (string, []finding.Step, error) {
		account, ok := cli.NamespacedName(self)
		if !ok {
			return "", nil, cli.Usagef("--service-account: %q is not NAMESPACE/NAME", self)
		}
		source, err := flags.Connect(env)
		if err != nil {
			return "", nil, err
		}
		steps := tokens.Steps
		if flags.File != "" {
			steps = tokens.FileSteps
		}
		return "workload tokens on the hub " + s.Config.Host, steps(s, source, policy.Account(account)), nil
	})
}
