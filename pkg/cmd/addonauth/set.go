package addonauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/driverswitch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/flags"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

type setOptions struct {
	env        cli.Env
	changes    *cli.Changes
	wait       cli.Wait
	agent      fleet.AgentFlags
	driver     driver.AuthType
	seconds    int64
	secondsSet bool
}

func newSet(env cli.Env) *cobra.Command {
	o := &setOptions{env: env, changes: cli.NewChanges(env), wait: cli.Wait{Enabled: true}}
	cmd := &cobra.Command{
		Use:   "set --driver csr|token",
		Short: "Change how a cluster's add-ons authenticate, on the managed cluster",
		Long: `Change how a cluster's add-ons authenticate to the hub, after join. Run it with
the context of the managed cluster.

It changes the Klusterlet, waits until the agent runs with the change, and then
until every add-on has registered again. Custom signers always use
certificates. Tokens that exist keep their lifetime until they are refreshed;
"addon-auth rotate" on the hub replaces them at once.`,
		Example: fmt.Sprintf(`  # Tokens of a day
  %[1]s addon-auth set --driver token --expiration-seconds 24h

  # Back to certificates
  %[1]s addon-auth set --driver csr`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.secondsSet = cmd.Flags().Changed("expiration-seconds")
			if err := o.validate(); err != nil {
				return err
			}
			return o.changes.End(o.run(cmd.Context()))
		},
	}
	cli.NewEnum(&o.driver, nil, driver.CSR, driver.Token).AddTo(cmd, "driver", "", "csr for client certificates, token for ServiceAccount tokens")
	cli.AliasFlag(cmd, "addon-kubeclient-registration-auth", "driver")
	cmd.Flags().Int64Var(&o.seconds, "expiration-seconds", 0, "Lifetime of tokens, as a duration or in seconds; 0 means one year, the hub may issue shorter ones")
	cli.AliasFlag(cmd, "addon-token-expiration-seconds", "expiration-seconds")
	o.agent.AddTo(cmd)
	o.wait.AddTo(cmd, "Wait until every add-on has registered again")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *setOptions) validate() error {
	warning, err := flags.AddOnTokenSeconds("expiration-seconds", o.seconds)
	switch {
	case err != nil:
		return cli.Usagef("%v", err)
	case o.driver == "" && !o.secondsSet:
		return cli.Usagef("--driver is missing")
	case o.driver == driver.CSR && o.secondsSet:
		return cli.Usagef("--expiration-seconds is for tokens: it has no meaning with --driver=csr")
	case warning != "":
		o.env.Warn("%s", warning)
	}
	return nil
}

func (o *setOptions) run(ctx context.Context) error {
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	runner, installed, err := o.agent.Find(ctx, o.env)
	if err != nil {
		return err
	}
	want, err := o.desired(installed.AddOnDriver())
	if err != nil {
		return err
	}
	if err := o.change(ctx, runner, installed, want); err != nil {
		return err
	}
	if driverswitch.Disabled(installed.Klusterlet) {
		o.env.Warn("the feature gate AddonManagement is off in the Klusterlet: this agent registers no add-ons")
	}
	if !o.wait.Enabled || o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	return o.await(ctx, runner, installed, want)
}

// desired returns the field as the flags and the live one define it.
func (o *setOptions) desired(live operatorv1.AddOnRegistrationDriver) (operatorv1.AddOnRegistrationDriver, error) {
	var seconds *int64
	if o.secondsSet {
		seconds = &o.seconds
	}
	want, err := driverswitch.Desired(live, o.driver, seconds)
	if errors.Is(err, driverswitch.ErrNoTokens) {
		return want, cli.Usagef("--expiration-seconds needs --driver=token: %v", err)
	}
	return want, err
}

func (o *setOptions) change(ctx context.Context, runner agent.Runner, installed agent.Installed, want operatorv1.AddOnRegistrationDriver) error {
	if apiequality.Semantic.DeepEqual(installed.AddOnDriver(), want) {
		return fleet.AddUnchanged(o.changes, installed)
	}
	return fleet.AddConfigured(o.changes, installed, runner.SetAddOnDriver(ctx, installed, &want))
}
