package exchange

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("exchange", "Manage workload token exchange",
		newExplain(env), newAllow(env), newPolicy(env), newRBAC(env),
		newTest(env), newCredential(env))
}

func newPolicy(env cli.Env) *cobra.Command {
	return cli.Parent("policy", "Check the rules of the token exchange", newLint(env))
}
