//go:build linux

package controller

import (
	"context"
	"os/exec"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/rules"
)

// rulesName is the command that the work agent starts for condition rules.
const rulesName = "rules"

func newRules() *cobra.Command {
	return &cobra.Command{
		Use:    rulesName,
		Short:  "Evaluate the condition rules of ManifestWorks for the work agent, within limits",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rules.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// ruleProcesses are this program with that command, and nothing of the agent's environment.
func ruleProcesses() *rules.Processes {
	return rules.New(func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", "controller", rulesName)
		cmd.Args[0] = "kubectl-ocm"
		cmd.Env = []string{"GOMAXPROCS=2"}
		return cmd
	}, clock.RealClock{})
}
