package join

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

// takeOverOf returns the take-over that the flags ask for. What the agent has of its
// hub must stay, to the letter: another spelling of the address is another hub to the
// works that it has applied.
func (o *options) takeOverOf(cmd *cobra.Command) (*install.TakeOver, error) {
	wanted, err := o.takeOver.Value()
	if wanted == nil {
		return nil, err
	}
	for _, name := range []string{
		"refresh", "rotate", "hub-token", "hub-token-file", "hub-apiserver", "ca-file", "hub-ca-hash", "proxy-url", "proxy-ca-file",
		"force-internal-endpoint-lookup", "hub-context", "hub-kubeconfig", "registration-auth", "output-file",
	} {
		if cmd.Flags().Changed(name) {
			return nil, cli.Usagef("--take-over keeps the hub and the credential of the agent: leave out --%s, and change that afterwards", name)
		}
	}
	return wanted, err
}

// replace replaces the agent of OCM.
func (o *options) replace(ctx context.Context, k agent.Values) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, err := o.runner()
	if err != nil {
		return err
	}
	if o.env.Kube.DryRun() != cli.DryRunNone {
		plan, err := runner.Plan(ctx, k)
		if err != nil {
			return err
		}
		return fleet.PrintTakeOver(o.env, o.out, plan)
	}
	return o.changes.End(o.takeOverNow(ctx, runner, k))
}

func (o *options) takeOverNow(ctx context.Context, runner agent.Runner, k agent.Values) error {
	outcome, err := runner.Install(ctx, k, nil)
	fleet.NoteApplied(o.changes, outcome.Changes)
	if err != nil {
		waiting := install.Unmet(err)
		if waiting == "" {
			waiting = "the agent"
		}
		return o.wait.TimedOut(fleet.Explain(err), waiting, "see what is wrong with: "+o.env.Command("check agent")+"; then run the command again")
	}
	if err := o.sayWorkPermissions(ctx, runner); err != nil {
		return err
	}
	name, err := runner.ClusterName(ctx)
	if err != nil {
		return err
	}
	return o.changes.Print("This release runs the agent of cluster " + name + ".")
}

// runner returns an installer of the agent, with the checks that the user skips.
func (o *options) runner() (agent.Runner, error) {
	runner, err := fleet.NewRunner(o.env, o.env.Kube)
	if err != nil {
		return agent.Runner{}, err
	}
	runner.Skip = o.preflight.Skipped()
	return agent.Runner{Runner: runner}, nil
}
