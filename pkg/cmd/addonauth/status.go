package addonauth

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
)

type statusOptions struct {
	env cli.Env
	out *cli.Output
	selection
}

func newStatus(env cli.Env) *cobra.Command {
	o := &statusOptions{env: env, out: cli.ListOutput()}
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"get"},
		Short:   "Show the credentials of add-ons, on the hub",
		Long: `Show the credentials of add-ons: how each one authenticates, as whom, until
when, and what it waits for. Run it with the context of the hub.

REGISTRATION is kubeClient, for the hub's API server, or the name of a custom
signer. EXPIRES and REFRESHED are what the cluster's agent reports, LIFETIME is
the time between them; Kubernetes dates certificates back by five minutes.`,
		Example: fmt.Sprintf(`  # Everything, with subjects and Secrets
  %[1]s addon-auth status -o wide

  # When does the credential of an add-on end
  %[1]s addon-auth status --cluster cluster1 --addon addon1 \
      -o 'jsonpath={.items[0].expires}'`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addTo(env, cmd)
	o.out.AddTo(cmd)
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	c, err := addons.Hub(ctx, o.env)
	if err != nil {
		return err
	}
	list, err := inventory.ListExplained(ctx, c, filter, o.env.Now(), o.env.Warn)
	if err != nil {
		return err
	}
	return cli.PrintFound(list, addons.Missing(o.env, filter, list), o.print)
}

func (o *statusOptions) print(list []inventory.AddOn) error {
	var rows []inventory.Registration
	for _, a := range list {
		rows = append(rows, a.Rows()...)
	}
	if len(rows) == 0 && !o.out.Machine() {
		o.env.Say("No add-ons found. One is installed by a ManagedClusterAddOn in the namespace of a cluster.")
		return nil
	}
	err := cli.PrintList(o.env.Out, o.out, cli.Kind[inventory.Registration]{Name: "AddOnRegistration", Ref: addons.RefOfRegistration}, rows, o.columns())
	if o.out.Format == cli.TableFmt {
		o.explain(rows)
	}
	return err
}

func (o *statusOptions) columns() []cli.Column[inventory.Registration] {
	now := o.env.Clock.Now()
	type row = inventory.Registration
	return []cli.Column[row]{
		{Header: "cluster", Value: func(r row) string { return r.Cluster }},
		{Header: "add-on", Value: func(r row) string { return r.AddOn }},
		{Header: "registration", Value: row.Label},
		{Header: "driver", Value: func(r row) string { return r.Driver }},
		{Header: "expires", Value: func(r row) string { return cli.Until(r.Expires, now) }},
		{Header: "refreshed", Value: func(r row) string {
			if r.Refreshed == nil {
				return ""
			}
			return cli.Age(*r.Refreshed, now) + " ago"
		}},
		{Header: "lifetime", Value: func(r row) string {
			if r.Lifetime() == 0 {
				return ""
			}
			return credential.Lifetime(r.Lifetime())
		}},
		{Header: "state", Value: func(r row) string { return string(r.State) }},
		{Header: "user", Wide: true, Value: func(r row) string { return r.User }},
		{Header: "groups", Wide: true, Value: func(r row) string { return strings.Join(r.Groups, ",") }},
		{Header: "secret", Wide: true, Value: func(r row) string {
			if r.Secret == "" {
				return ""
			}
			return r.Namespace + "/" + r.Secret
		}},
		{Header: "reason", Wide: true, Value: func(r row) string { return r.Reason }},
		{Header: "message", Wide: true, Rest: true, Value: func(r row) string { return r.Message }},
	}
}

// explain says below the table what each registration waits for.
func (o *statusOptions) explain(rows []inventory.Registration) {
	for _, r := range rows {
		if r.State == inventory.Ready {
			continue
		}
		label := r.Label()
		if label != "" {
			label = " (" + label + ")"
		}
		o.env.Say("%s", cli.Fold(fmt.Sprintf("%s/%s%s: %s: %s", r.Cluster, r.AddOn, label, r.Reason, printable.Line(r.Message)), "  "))
	}
}
