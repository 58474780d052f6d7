package fleet

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

// AgentOutdated is what a command says while it waits for an agent whose
// Klusterlet it changed.
const AgentOutdated = "the operator has not given the agent its new flags yet"

// AgentFlags choose an agent of the managed cluster that the connection flags
// name.
type AgentFlags struct {
	// Klusterlet is its name; empty for the only one there is, or the default.
	Klusterlet string
}

// AddTo registers the flags.
func (f *AgentFlags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Klusterlet, "klusterlet-name", "", "Klusterlet of the agent, if there are several (default klusterlet)")
}

// Find returns the agent, and an installer for its cluster.
func (f *AgentFlags) Find(ctx context.Context, env cli.Env) (runner agent.Runner, installed agent.Installed, err error) {
	if runner.Runner, err = NewRunner(env, env.Kube); err != nil {
		return runner, installed, err
	}
	if err := RequireManaged(env, runner.Client); err != nil {
		return runner, installed, err
	}
	installed, err = runner.Named(ctx, f.Klusterlet)
	return runner, installed, f.explain(env, err)
}

func (f *AgentFlags) explain(env cli.Env, err error) error {
	switch {
	case errors.Is(err, agent.ErrSeveralAgents):
		return cli.Usagef("%v: name one with --klusterlet-name", err)
	case errors.Is(err, agent.ErrNoAgent) && f.Klusterlet != "":
		return cli.NotFoundf("list them with: "+env.Kubectl("get klusterlets"), "there is no Klusterlet %s", f.Klusterlet)
	case errors.Is(err, agent.ErrNoAgent):
		return cli.NotFoundf("join it first: "+env.Command("join"), "no agent is installed here")
	}
	return err
}

// AddUnchanged notes that an agent's Klusterlet is as it should be.
func AddUnchanged(changes *cli.Changes, installed agent.Installed) error {
	return changes.Add(KlusterletRef(installed.Klusterlet.Name), cli.Unchanged)
}

// AddConfigured notes that an agent's Klusterlet was changed, unless the change
// ended with err. One that a dry run held back is none that failed.
func AddConfigured(changes *cli.Changes, installed agent.Installed, err error) error {
	if _, refused := errors.AsType[*cli.WriteRefusedError](err); err != nil && !refused {
		return err
	}
	return changes.Add(KlusterletRef(installed.Klusterlet.Name), "configured")
}
