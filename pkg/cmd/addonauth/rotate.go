package addonauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/rotation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

type rotateOptions struct {
	env     cli.Env
	changes *cli.Changes
	wait    cli.Wait
	selection
}

func newRotate(env cli.Env) *cobra.Command {
	o := &rotateOptions{env: env, changes: cli.NewChanges(env)}
	cmd := &cobra.Command{
		Use:   "rotate --addon ADDON",
		Short: "Rotate the credentials of add-ons, on the hub",
		Long: `Give add-ons new credentials now. Run it with the context of the hub.

It asks by an annotation of the ManagedClusterAddOn, which the cluster's agent
sees: credentials that were issued earlier are replaced, and stay in use until
the new ones are stored. An agent of another project does not know the
annotation; there, delete the add-on's Secret on the managed cluster.

A token that leaked stays valid until it expires. To make it useless at once,
delete the add-on's ServiceAccount in the cluster's namespace on the hub: it is
made again, and the agent obtains a token of the new one.`,
		Example: fmt.Sprintf(`  # On all clusters that have it, until the new credentials are there
  %[1]s addon-auth rotate --addon addon1 --wait

  # On one
  %[1]s addon-auth rotate --addon addon1 --cluster cluster1`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.changes.End(o.run(cmd.Context())) },
	}
	o.addTo(env, cmd)
	o.wait.AddTo(cmd, "wait until the new credentials are there")
	o.changes.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *rotateOptions) run(ctx context.Context) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	if len(filter.Names) == 0 {
		return cli.Usagef("--addon is missing")
	}
	ctx, cancel := o.wait.Context(ctx)
	defer cancel()
	c, config, err := o.env.Kube.Connect()
	if err != nil {
		return err
	}
	before, err := o.find(ctx, c, filter)
	if err != nil {
		return err
	}
	// Credentials end at full seconds. One that was issued a moment ago, and the one
	// that replaces it, could not be distinguished.
	if o.waits() && !pause.For(ctx, o.env.Clock, time.Second) {
		return ctx.Err()
	}
	now, err := rotation.HubTime(ctx, config, o.env.Clock)
	if err != nil {
		return err
	}
	for _, a := range before {
		if err := o.request(ctx, c, a, now); err != nil {
			return err
		}
	}
	if !o.waits() {
		return nil
	}
	return o.await(ctx, c, filter, before)
}

func (o *rotateOptions) waits() bool {
	return o.wait.Enabled && o.env.Kube.DryRun() == cli.DryRunNone
}

// find returns the add-ons; all that were named have to be there.
func (o *rotateOptions) find(ctx context.Context, c client.Client, filter inventory.Filter) ([]inventory.AddOn, error) {
	if err := addons.RequireHub(ctx, o.env, c); err != nil {
		return nil, err
	}
	found, err := inventory.List(ctx, c, filter, o.env.Now(), o.env.Warn)
	if err != nil {
		return nil, err
	}
	return found, addons.Missing(o.env, filter, found)
}

// request requests new credentials of an add-on, as of now.
func (o *rotateOptions) request(ctx context.Context, c client.Client, a inventory.AddOn, now time.Time) error {
	err := rotation.Request(ctx, c, a, now)
	if _, refused := errors.AsType[*cli.WriteRefusedError](err); err != nil && !refused {
		return fmt.Errorf("add-on %s on %s: %w", a.Name, a.Cluster, err)
	}
	return o.changes.Add(addons.RefOf(a), "rotation requested")
}

// await waits until every credential is another one than before.
func (o *rotateOptions) await(ctx context.Context, c client.Client, filter inventory.Filter, before []inventory.AddOn) error {
	pending, err := await(ctx, o.env, "Waiting for new credentials", func(ctx context.Context) ([]inventory.Registration, error) {
		list, err := inventory.List(ctx, c, filter, o.env.Now(), o.env.Warn)
		return rotation.Pending(before, list), err
	})
	if err == nil || len(pending) == 0 {
		return err
	}
	r := pending[0]
	return o.wait.TimedOut(err, inventory.Summary(pending), fmt.Sprintf(
		"see what the agent says with: %s; if it does not know the annotation, delete Secret %s/%s on %s",
		o.env.Command("addon-auth status"), r.Namespace, r.Secret, cmp.Or(r.HostingCluster, r.Cluster)))
}
