package issuer

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/issuers"
)

type showOptions struct {
	env   cli.Env
	out   *cli.Output
	rules rules.Flags
}

func newShow(env cli.Env) *cobra.Command {
	o := &showOptions{env: env, out: cli.NewOutput(cli.Text)}
	cmd := &cobra.Command{
		Use:               "show CLUSTER",
		Short:             "Show the token issuer of one cluster with its keys, on the hub",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.rules.AddTo(cmd)
	o.out.AddTo(cmd)
	return cmd
}

func (o *showOptions) run(ctx context.Context, cluster string) error {
	known, err := gather(ctx, o.env, o.rules)
	if err != nil {
		return err
	}
	issuer, err := known.find(o.env, cluster)
	if err != nil {
		return err
	}
	if o.out.Machine() {
		return o.out.Object(o.env.Out, cli.Header{Kind: issuerKind, Metadata: &cli.Metadata{Name: issuer.Cluster}}, issuer)
	}
	return o.print(issuer)
}

func (o *showOptions) print(issuer issuers.Issuer) error {
	w := tabwriter.NewWriter(o.env.Out, 0, 8, 2, ' ', 0)
	line := func(label, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(w, "%s:\t%s\n", label, value)
		}
	}
	line("Cluster", issuer.Cluster)
	line("Issuer", issuer.Issuer)
	line("Source", strings.TrimSpace(issuer.Source+" "+issuer.Location))
	if issuer.PublishedAt != nil {
		line("Published", issuer.PublishedAt.UTC().Format(time.RFC3339))
	}
	line("Trusted", cli.YesNo(issuer.Trusted))
	line("Reason", issuer.Reason)
	line("Message", issuer.Message)
	line("Audiences", strings.Join(issuer.Audiences, ", "))
	for _, key := range issuer.Keys {
		line("Key", key.ID)
		line("  Type", strings.TrimSpace(key.Type+" "+key.Algorithm))
		line("  Thumbprint", key.Thumbprint)
	}
	return w.Flush()
}
