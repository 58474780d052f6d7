package pullsecrets

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("pull-secrets", "Manage image pull secrets with bound ServiceAccount tokens",
		newInstall(env), newUninstall(env), newList(env), newCheck(env), newRefresh(env),
		newProviderConfig(env), newProvider(env))
	cmd.Aliases = []string{"pull-secret"}
	return cmd
}

// flagUsername and defaultUsername are what a registry gets as the user name.
const (
	flagUsername    = "username"
	defaultUsername = "serviceaccount"
)
