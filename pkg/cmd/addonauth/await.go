package addonauth

import (
	"context"
	"time"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/driverswitch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
)

// hubPatience bounds one request to a hub that this machine may not reach.
const hubPatience = 20 * time.Second

// await waits for the agent and then for its add-ons.
func (o *setOptions) await(ctx context.Context, runner agent.Runner, installed agent.Installed, want operatorv1.AddOnRegistrationDriver) error {
	err := runner.AwaitFlags(ctx, installed, func(args []string) string {
		if !driverswitch.InFlags(args, want) {
			return fleet.AgentOutdated
		}
		return ""
	})
	if err != nil {
		return o.wait.TimedOut(err, "the agent to run with its new flags: "+err.Error(),
			"see what is wrong with: "+o.env.Command("check agent")+"; the Klusterlet is changed already")
	}
	if installed.Hub == nil {
		o.env.Say("The hub has given this cluster no credential yet; its add-ons register when it has.")
		return nil
	}
	config, release, err := runner.HubConnection(ctx, installed)
	if err != nil {
		return err
	}
	defer release()
	config.Timeout = hubPatience
	hub, err := cli.NewClient(o.env.Kube.Guard(config))
	if err != nil {
		return o.unasked(installed, err)
	}
	return o.awaitAddOns(ctx, installed, driverswitch.Cluster{
		Name: installed.Cluster(), Managed: runner.Client, Hub: hub, Driver: driverswitch.AuthType(want),
	})
}

func (o *setOptions) awaitAddOns(ctx context.Context, installed agent.Installed, s driverswitch.Cluster) error {
	var done int
	pending, err := await(ctx, o.env, "Waiting for the add-ons to register", func(ctx context.Context) (pending []inventory.Registration, err error) {
		done, pending, err = s.Progress(ctx, o.env.Clock.Now())
		return pending, err
	})
	switch {
	case err != nil && len(pending) > 0 && ctx.Err() != nil:
		return o.wait.TimedOut(ctx.Err(), inventory.Summary(pending), "look at it on the hub with: "+o.env.Elsewhere("addon-auth status --cluster", s.Name))
	case err != nil:
		return o.unasked(installed, err)
	case done == 0:
		o.env.Say("This cluster has no add-on with a kubeClient registration; those to come use driver %s.", s.Driver)
		return nil
	}
	o.env.Say("%d add-on(s) registered with driver %s.", done, s.Driver)
	return nil
}

// unasked explains that the change was made but cannot be watched from here.
func (o *setOptions) unasked(installed agent.Installed, err error) error {
	explained := cli.Explain(err)
	return &cli.Explained{
		Problem: "the agent runs with the change, but the hub cannot be asked from here whether its add-ons have registered",
		Try:     "on the hub: " + o.env.Elsewhere("addon-auth status --cluster", installed.Cluster()),
		Code:    cli.ExitCode(explained), Cause: explained,
	}
}

// await shows the progress of inventory.Await.
func await(ctx context.Context, env cli.Env, title string, pending func(context.Context) ([]inventory.Registration, error)) (last []inventory.Registration, err error) {
	err = env.Progress().Step(ctx, title, func(ctx context.Context, say cli.Say) (err error) {
		last, err = inventory.Await(ctx, env.Clock, inventory.Warn(say), pending)
		return err
	})
	return last, err
}
