package issuer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

// issuerKind is the kind of an issuer in the machine formats.
const issuerKind = "Issuer"

type listOptions struct {
	env   cli.Env
	out   *cli.Output
	rules rules.Flags
}

func newList(env cli.Env) *cobra.Command {
	o := &listOptions{env: env, out: cli.ListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the token issuers of all clusters, on the hub",
		Long: `Show the token issuers of all clusters, and whether the hub trusts them. Run
it with the context of the hub.

SOURCE is hub for keys that a cluster's agent publishes, or where the token
authorizer's rules take them from: inline, file, uri or discovery. AGE
is how long ago the published keys last changed.`,
		Example: fmt.Sprintf(`  # Which clusters are not trusted, and why
  %[1]s issuer list -o wide

  # What a configuration file says, without a hub
  %[1]s issuer list --clusters-config clusters.yaml`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.rules.AddTo(cmd)
	o.out.AddTo(cmd)
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	known, err := gather(ctx, o.env, o.rules)
	if err != nil {
		return err
	}
	if len(known.list) == 0 && !o.out.Machine() {
		o.env.Say("No issuers found. A managed cluster publishes its own with: %s", o.env.Elsewhere("issuer publish"))
		return nil
	}
	err = cli.PrintList(o.env.Out, o.out, o.kind(), known.list, o.columns())
	if o.out.Format == cli.TableFmt {
		o.explain(known.list)
	}
	return err
}

// kind is what is listed. A file may be about clusters that the hub does not know.
func (o *listOptions) kind() cli.Kind[issuers.Issuer] {
	return cli.Kind[issuers.Issuer]{Name: issuerKind, Ref: func(i issuers.Issuer) cli.Ref {
		if o.rules.File != "" {
			return cli.RefTo("", "", i.Cluster, time.Time{})
		}
		return fleet.ClusterRef(i.Cluster, time.Time{})
	}}
}

func (o *listOptions) columns() []cli.Column[issuers.Issuer] {
	type row = issuers.Issuer
	now := o.env.Clock.Now()
	return []cli.Column[row]{
		{Header: "cluster", Value: func(i row) string { return i.Cluster }},
		{Header: "issuer", Rest: true, Value: func(i row) string { return i.Issuer }},
		{Header: "source", Value: func(i row) string { return i.Source }},
		{Header: "keys", Wide: true, Value: func(i row) string {
			if len(i.Keys) == 0 {
				return ""
			}
			return strconv.Itoa(len(i.Keys))
		}},
		{Header: "age", Value: func(i row) string {
			if i.PublishedAt == nil {
				return ""
			}
			return cli.Age(*i.PublishedAt, now)
		}},
		{Header: "trusted", Value: func(i row) string { return cli.YesNo(i.Trusted) }},
		{Header: "reason", Value: func(i row) string { return i.Reason }},
		{Header: "key ids", Wide: true, Value: func(i row) string { return strings.Join(ids(i), ",") }},
		{Header: "audiences", Wide: true, Value: func(i row) string { return strings.Join(i.Audiences, ",") }},
		{Header: "location", Wide: true, Value: func(i row) string { return i.Location }},
		{Header: "message", Wide: true, Rest: true, Value: func(i row) string { return i.Message }},
	}
}

// explain says below the table why a cluster is not trusted.
func (o *listOptions) explain(list []issuers.Issuer) {
	for _, issuer := range list {
		if !issuer.Trusted {
			o.env.Say("%s", cli.Fold(fmt.Sprintf("%s: %s: %s", issuer.Cluster, issuer.Reason, issuer.Message), "  "))
		}
	}
}

func ids(issuer issuers.Issuer) []string {
	out := make([]string, len(issuer.Keys))
	for i, key := range issuer.Keys {
		out[i] = cli.Short(key.ID)
	}
	return out
}
