package cmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// asClusteradm registers what every command of clusteradm has on those that lack it:
// --timeout, which bounds the command, and --dry-run on commands that write nothing.
func asClusteradm(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		asClusteradm(child)
	}
	if cmd.RunE == nil || cmd.DisableFlagParsing || cmd.HasSubCommands() {
		return
	}
	if cmd.Flags().Lookup("timeout") == nil {
		bound(cmd)
	}
	if path := strings.Fields(cmd.CommandPath()); len(path) > 1 && (path[1] == "get" || path[1] == "version") && cmd.Flags().Lookup("dry-run") == nil {
		cmd.Flags().String("dry-run", "", "no effect: the command writes nothing")
		flag := cmd.Flags().Lookup("dry-run")
		flag.Hidden, flag.NoOptDefVal = true, "client"
	}
}

// bound gives a command a hidden --timeout.
func bound(cmd *cobra.Command) {
	var timeout cli.Timeout
	timeout.AddTo(cmd)
	cmd.Flags().Lookup("timeout").Hidden = true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := timeout.Context(cmd.Context())
		defer cancel()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
}
