package legacytokens

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("legacy-tokens", "Find and retire ServiceAccount tokens that never expire",
		newList(env), newMigrate(env), newQuarantine(env), newRestore(env), newDelete(env))
	cmd.Aliases = []string{"legacy-token"}
	cmd.Long = `Find the Secrets of type kubernetes.io/service-account-token, whose tokens never
expire, see what uses them, and take them out of service step by step: migrate
the pull secrets that they feed, quarantine them, and delete them later. Only
the last step cannot be undone.

Commands that change something print what they would do; --dry-run=none does it.`
	return cmd
}
