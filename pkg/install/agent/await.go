package agent

import (
	"context"
	"errors"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AwaitAgent waits until the agent runs.
func (r Runner) AwaitAgent(ctx context.Context) error {
	if err := r.Await(ctx, "Waiting for the operator", install.DeploymentReady(names.OperatorNamespace, names.KlusterletOperator)); err != nil {
		return err
	}
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return err
	}
	return r.Await(ctx, "Waiting for the agent", apply.Target{Object: named(names.KlusterletName), Check: apply.Conditions(
		apply.Condition("Applied", "True"), apply.Condition("RegistrationDesiredDegraded", "False"),
	)}, install.DeploymentReady(namespace, names.RegistrationAgentDeployment(names.KlusterletName)))
}

// agentNamespace is the namespace of the agent that join installs.
func (r Runner) agentNamespace(ctx context.Context) (string, error) {
	live, err := lookup.Klusterlet(ctx, r.Client)
	if err != nil || live == nil {
		return names.AgentNamespace, err
	}
	return lookup.Namespace(live), nil
}

// AwaitJoined waits until the agents work with a credential of the hub that the agent
// bootstraps at. What the agent reported with that of an earlier hub does not count.
func (r Runner) AwaitJoined(ctx context.Context) error {
	if err := r.Step(ctx, "Waiting for the credential", r.awaitCredential); err != nil {
		return err
	}
	connected := apply.Target{Object: named(names.KlusterletName), Check: apply.Condition(names.ConditionHubConnectionDegraded, "False")}
	if err := r.Await(ctx, "Waiting for the hub to accept the cluster", connected); err != nil {
		return err
	}
	return r.awaitWork(ctx)
}

func (r Runner) awaitCredential(ctx context.Context, _ install.Say) error {
	namespace, err := r.agentNamespace(ctx)
	if err != nil {
		return err
	}
	for {
		stored, err := r.credentialHere(ctx, namespace)
		if err != nil || stored != nil {
			return err
		}
		if !pause.For(ctx, r.Clock, install.PollInterval) {
			return ctx.Err()
		}
	}
}

// credentialHere returns the agent's credential if it is for the hub of its bootstrap
// kubeconfig, and nil otherwise.
func (r Runner) credentialHere(ctx context.Context, namespace string) (map[string][]byte, error) {
	stored, err := lookup.SecretData(ctx, r.Client, namespace, names.HubKubeconfigSecret)
	if err != nil || len(stored[names.KeyKubeconfig]) == 0 {
		return nil, err
	}
	bootstrap, err := StoredBootstrap(ctx, r.Client)
	if err != nil && !errors.Is(err, kubeconfig.ErrInvalid) { // The agent does without.
		return nil, err
	}
	hub, err := kubeconfig.ParseHub(stored[names.KeyKubeconfig])
	if err != nil || bootstrap != nil && !hub.SameServer(*bootstrap) {
		return nil, nil //nolint:nilerr,nilnil // The agent replaces it.
	}
	return stored, nil
}
