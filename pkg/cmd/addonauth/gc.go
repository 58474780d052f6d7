package addonauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/cleanup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

type gcOptions struct {
	env cli.Env
	out *cli.Output
	yes cli.Yes
	selection
}

func newGC(env cli.Env) *cobra.Command {
	o := &gcOptions{env: env, out: cli.NewOutput(cli.TableFmt, cli.Name)}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete orphaned objects of earlier add-on drivers, on the hub",
		Long: `Remove what earlier drivers of add-ons left on the hub. Run it with the context
of the hub.

These are: ServiceAccounts, Roles and RoleBindings for tokens of add-ons that
are gone or use certificates by now; conditions about a driver that is not in
use; CSRs of add-ons that are settled for an hour, or that no controller
waits for. Only what carries the labels and the names of add-on registration is
looked at. The hub's addon-manager removes most of it by itself; this is for
what an older release, or a hub that was down, left behind.`,
		Example: fmt.Sprintf(`  # See what there is
  %[1]s addon-auth gc --dry-run`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addTo(env, cmd)
	cli.AddYesFlag(cmd.Flags(), &o.yes)
	o.out.AddTo(cmd)
	env.Kube.AddDryRunFlag(cmd)
	return cmd
}

func (o *gcOptions) run(ctx context.Context) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	c, err := addons.Hub(ctx, o.env)
	if err != nil {
		return err
	}
	found, err := inventory.Orphans(ctx, c, filter, o.env.Clock.Now())
	if err != nil {
		return err
	}
	if len(found) == 0 && !o.out.Machine() {
		o.env.Say("Nothing is left over.")
		return nil
	}
	if err := o.print(found); err != nil || len(found) == 0 {
		return err
	}
	return o.remove(ctx, c, found)
}

func (o *gcOptions) remove(ctx context.Context, c client.Client, found []inventory.Orphan) error {
	name, server := o.env.Kube.Target()
	if err := o.env.Confirm(o.yes, fmt.Sprintf("Remove these %d from context %s (%s)?", len(found), name, server)); err != nil {
		return err
	}
	for _, l := range found {
		if err := removed(cleanup.Remove(ctx, c, l)); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	if suffix := o.env.Kube.DryRunSuffix(); suffix != "" {
		o.env.Say("Nothing was removed%s.", suffix)
		return nil
	}
	o.env.Say("Removed: %d.", len(found))
	return nil
}

func (o *gcOptions) print(found []inventory.Orphan) error {
	type row = inventory.Orphan
	return cli.PrintList(o.env.Out, o.out, cli.Kind[row]{Name: "AddOnLeftover", Ref: addons.RefOfOrphan}, found, []cli.Column[row]{
		{Header: "kind", Value: func(l row) string { return l.Kind }},
		{Header: "namespace", Value: func(l row) string { return l.Namespace }},
		{Header: "name", Value: func(l row) string { return l.Name }},
		{Header: "why", Value: func(l row) string { return l.Why }},
	})
}

// removed maps the error of a removal to an exit code. A write that a dry run refused is no
// error.
func removed(err error) error {
	if _, refused := errors.AsType[*cli.WriteRefusedError](err); refused {
		return nil
	}
	if changed, ok := errors.AsType[*cleanup.ChangedError](err); ok {
		return cli.Blockedf("run the command again", "%v", changed)
	}
	return err
}
