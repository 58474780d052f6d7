// Package completion is the "completion" command: it prints the script that
// completes commands, flags and names in a shell.
package completion

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	shells := []cobra.Completion{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the completion script of a shell",
		Long: `Print the completion script of a shell, for the command under its own name.

As a kubectl plugin it completes without a script: kubectl asks the executable
kubectl_complete-ocm, which make install puts next to the plugin.`,
		Example: `  # For this session of bash
  source <(kubectl-ocm completion bash)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one shell of %v", shells)
			}
			return nil
		},
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(env.Out, true)
			case "zsh":
				return root.GenZshCompletion(env.Out)
			case "fish":
				return root.GenFishCompletion(env.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(env.Out)
			}
			return cli.Usagef("%s", fmt.Sprintf("%q is not one of %v", args[0], shells))
		},
	}
}
