package fleet

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
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
func (f *AgentFlags) Find(ctx context.Context, env cli.Env) (*install.Runner, install.Agent, error) {
	runner, err := NewRunner(env, env.Kube)
	if err != nil {
		return nil, install.Agent{}, err
	}
	if err := RequireManaged(env, runner.Client); err != nil {
		return nil, install.Agent{}, err
	}
	agent, err := runner.NamedAgent(ctx, f.Klusterlet)
	return runner, agent, f.explain(env, err)
}

func (f *AgentFlags) explain(env cli.Env, err error) error {
	switch {
	case errors.Is(err, install.ErrSeveralAgents):
		return cli.Usagef("%v: name one with --klusterlet-name", err)
	case errors.Is(err, install.ErrNoAgent) && f.Klusterlet != "":
		return cli.NotFoundf("list them with: "+env.Kubectl("get klusterlets"), "there is no Klusterlet %s", f.Klusterlet)
	case errors.Is(err, install.ErrNoAgent):
		return cli.NotFoundf("join it first: "+env.Command("join"), "no agent is installed here")
	}
	return err
}

// AddUnchanged notes that an agent's Klusterlet is as it should be.
func AddUnchanged(changes *cli.Changes, agent install.Agent) error {
	return changes.Add(KlusterletRef(agent.Klusterlet.Name), cli.Unchanged)
}

// AddConfigured notes that an agent's Klusterlet was changed, unless the change
// ended with err. One that a dry run held back is none that failed.
func AddConfigured(changes *cli.Changes, agent install.Agent, err error) error {
	if _, refused := errors.AsType[*cli.WriteRefusedError](err); err != nil && !refused {
		return err
	}
	return changes.Add(KlusterletRef(agent.Klusterlet.Name), "configured")
}
