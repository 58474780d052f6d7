// Package upgrade is the "upgrade" command of clusteradm. Here init and join
// upgrade what they installed and keep its settings, so it only says that.
package upgrade

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command, which is not shown in help.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("upgrade", "Print how to upgrade",
		pointer(env, "clustermanager", "init --wait", "the hub"),
		pointer(env, "klusterlet", "join --cluster-name NAME --hub-token ... --hub-apiserver ...", "the agent"))
	cmd.Hidden = true
	return cmd
}

func pointer(env cli.Env, name, command, what string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "Print how to upgrade " + what,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(*cobra.Command, []string) error {
			return &cli.Explained{
				Problem: what + " is upgraded by running its command again with a newer release; settings are kept",
				Try:     env.Command(command), Code: cli.CodeUsage,
			}
		},
	}
}
