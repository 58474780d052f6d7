package exchange

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

type lintOptions struct {
	env    cli.Env
	out    *cli.Output
	rules  rules.Flags
	strict bool
}

func newLint(env cli.Env) *cobra.Command {
	o := &lintOptions{env: env, out: cli.NewOutput(cli.Text)}
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Report invalid and risky rules",
		Long: `Report invalid and risky rules: rules that reach everything, that
are never used, whose accounts of the hub collide or are denied, with which a
cluster chooses a namespace of the hub, tokens of any audience.

It exits with 3 when there is an error. The API server refuses most of them
before they are stored; a policy on the hub that has one denies everything to
its cluster, and a file that has one is not loaded. Warnings are loaded.`,
		Example: fmt.Sprintf(`  # The rules on the hub
  %[1]s exchange policy lint

  # The file of a token authorizer without a hub
  %[1]s exchange policy lint -f clusters.yaml --strict`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.rules.AddTo(cmd)
	cmd.Flags().StringVarP(&o.rules.File, "filename", "f", "", "the same as --clusters-config")
	cmd.MarkFlagsMutuallyExclusive("filename", "clusters-config")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "a file in tokensmith's form, which has no policy, is an error")
	o.out.AddTo(cmd)
	return cmd
}

func (o *lintOptions) run(ctx context.Context) error {
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return err
	}
	opts := source.Options()
	opts.Strict = o.strict
	findings, err := source.Lint(ctx, opts)
	if err != nil {
		return rules.Explain(o.env, err)
	}
	if o.out.Machine() {
		err = cli.PrintList(o.env.Out, o.out, cli.Kind[policy.Finding]{Name: "PolicyFinding"}, findings, nil)
	} else {
		err = o.print(findings)
	}
	if err != nil {
		return err
	}
	text := count(findings)
	if policy.Failed(findings) {
		return cli.Blockedf("", "%s: %s", source, text)
	}
	o.env.Say("%s: %s.", source, text)
	return nil
}

// indent is how far what is said about a finding stands in.
const indent = "         "

func (o *lintOptions) print(findings []policy.Finding) error {
	for _, f := range findings {
		where := cmp.Or(f.Path, "the whole of it")
		text := fmt.Sprintf("%-8s %s\n%s", f.Severity, where, cli.Fold(indent+f.Message, indent))
		if f.Fix != "" {
			text += "\n" + cli.Fold(indent+"Fix: "+f.Fix, indent)
		}
		if _, err := fmt.Fprintln(o.env.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// count says how many findings of each severity there are.
func count(findings []policy.Finding) string {
	var parts []string
	for _, s := range []struct {
		severity policy.Severity
		plural   string
	}{{policy.Error, "errors"}, {policy.Warning, "warnings"}, {policy.Info, "notes"}} {
		n := len(slices.DeleteFunc(slices.Clone(findings), func(f policy.Finding) bool { return f.Severity != s.severity }))
		switch {
		case n == 1:
			parts = append(parts, "1 "+strings.TrimSuffix(s.plural, "s"))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, s.plural))
		}
	}
	if len(parts) == 0 {
		return "nothing to complain about"
	}
	return strings.Join(parts, ", ")
}
