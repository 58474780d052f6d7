package legacytokens

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/legacytoken"
)

type listOptions struct {
	selection

	out *cli.Output
}

func newList(env cli.Env) *cobra.Command {
	o := &listOptions{selection: selection{env: env}, out: cli.ListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List legacy tokens and what uses them",
		Long: `List the Secrets with tokens that never expire, with a verdict for each. Where
several are true, the first one is shown:

  quarantined        the API server refuses the token
  sa-gone            its ServiceAccount is gone, so the API server refuses it
  mounted            a Pod or a workload uses the Secret
  feeds-pull-secret  the token is the password in an image pull secret
  used-recently      the API server saw the token less than --recent ago
  manual             a user made the Secret, and no use is known
  unused             a controller made the Secret, and no use is known

-o wide and -o json add the evidence. Tokens are never printed.

The exit code is 3 if a legacy token is listed, 0 if none is.`,
		Example: fmt.Sprintf(`  # All legacy tokens of the cluster, and why they have their verdict
  %[1]s legacy-tokens list -A -o wide

  # Those whose pull secrets can be migrated
  %[1]s legacy-tokens list -A --verdict feeds-pull-secret`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addTo(cmd)
	o.out.AddTo(cmd)
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	inventory, err := o.gather(ctx)
	if err != nil {
		return err
	}
	if len(inventory.Tokens) == 0 && !o.out.Machine() {
		o.env.Say("No legacy tokens found %s.", o.where())
		return nil
	}
	if err := cli.PrintList(o.env.Out, o.out, cli.Kind[*legacytoken.Token]{Name: "LegacyToken", Ref: ref}, inventory.Tokens, o.columns()); err != nil {
		return err
	}
	return o.left(len(inventory.Tokens))
}

func ref(t *legacytoken.Token) cli.Ref { return cli.RefTo("secret", t.Namespace, t.Name, t.Created) }

// left is the error of a list that is not empty.
func (o *listOptions) left(count int) error {
	switch count {
	case 0:
		return nil
	case 1:
		return cli.Blockedf("", "1 legacy token is left")
	}
	return cli.Blockedf("", "%d legacy tokens are left", count)
}

func (o *listOptions) columns() []cli.Column[*legacytoken.Token] {
	type row = *legacytoken.Token
	now := o.env.Clock.Now()
	return []cli.Column[row]{
		{Header: "namespace", Value: func(t row) string { return t.Namespace }},
		{Header: "name", Value: func(t row) string { return t.Name }},
		{Header: "serviceaccount", Value: func(t row) string { return t.ServiceAccount }},
		{Header: "age", Value: func(t row) string { return cli.Age(t.Created, now) }},
		{Header: "last used", Value: func(t row) string { return t.LastUsed }},
		{Header: "verdict", Value: func(t row) string { return string(t.Assessment) }},
		{Header: "evidence", Wide: true, Rest: true, Value: func(t row) string { return strings.Join(t.Evidence, "; ") }},
	}
}
