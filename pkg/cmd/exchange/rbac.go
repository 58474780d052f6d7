package exchange

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/permissions"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

type rbacOptions struct {
	env        cli.Env
	rules      rules.Flags
	self       string
	namespaces []string
	clusters   []string
}

func newRBAC(env cli.Env) *cobra.Command {
	o := &rbacOptions{env: env}
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least permissions that the rules need on the hub",
		Long: `Print the least permissions that the rules need on the hub: in each namespace
that a rule leads to, the right to issue tokens for the ServiceAccounts that it
leads to, by name, and to watch ServiceAccounts, so that a token is not used
longer than its account exists. Where names are not known beforehand, because a
rule has a wildcard, the Role is for all of its namespace and says why.

Patterns for namespaces of the hub are spelled out among those that exist, and
the defaults' rules among the managed clusters; for a file, name them with
--target-namespaces and --clusters. Repeat the command when the rules change; on
the hub it also names the permissions that are no longer needed.`,
		Example: fmt.Sprintf(`  # Grant what the rules on the hub need
  %[1]s exchange rbac | kubectl apply -f -

  # For a file, without the hub
  %[1]s exchange rbac --clusters-config clusters.yaml \
      --service-account gateway/authorizer`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.rules.AddTo(cmd)
	cmd.Flags().StringVar(&o.self, "service-account", names.HubNamespace+"/"+names.TokenAuthorizer, "the token authorizer's ServiceAccount, as NAMESPACE/NAME")
	cmd.Flags().StringSliceVar(&o.namespaces, "target-namespaces", nil, "namespaces of the hub, to spell patterns out; those that exist by default")
	cmd.Flags().StringSliceVar(&o.clusters, "clusters", nil, `clusters that the defaults' rules are for; all managed clusters by default`)
	cli.NewEnum(new(cli.Format("yaml")), nil, "yaml").AddTo(cmd, "output", "o", "Output format")
	return cmd
}

func (o *rbacOptions) run(ctx context.Context) error {
	account, ok := cli.NamespacedName(o.self)
	if !ok {
		return cli.Usagef("--service-account: %q is not NAMESPACE/NAME", o.self)
	}
	self := policy.Account(account)
	source, err := o.rules.Open(ctx, o.env)
	if err != nil {
		return err
	}
	opts := source.Options()
	opts.Self = self
	cfg, err := source.Config(ctx, opts)
	if err != nil {
		return err
	}
	known := policy.Known{Self: self, Namespaces: o.namespaces, Clusters: o.clusters}
	hub := source.Hub()
	if hub == nil {
		return o.print(source, policy.RBAC(cfg.Specs(), known), nil)
	}
	if known, err = permissions.Complete(ctx, hub, known); err != nil {
		return err
	}
	p := policy.RBAC(cfg.Specs(), known)
	stale, err := permissions.Orphaned(ctx, hub, p)
	if err != nil {
		return err
	}
	return o.print(source, p, stale)
}

func (o *rbacOptions) print(source *rules.Source, p policy.Permissions, stale []string) error {
	var b strings.Builder
	about := fmt.Sprintf("# What the token authorizer needs for the rules of %s, made by %q.", source, o.env.Elsewhere("exchange rbac"))
	b.WriteString(cli.Fold(about, "# ") + "\n")
	for _, open := range p.Open {
		b.WriteString(cli.Fold("# NOTE: "+open+".", "#   ") + "\n")
	}
	for _, namespace := range stale {
		b.WriteString("# NO LONGER NEEDED, delete it with:\n#   " + o.env.Kubectl("delete role,rolebinding -n", namespace, policy.RoleName) + "\n")
	}
	switch {
	case len(p.Roles) > 0:
	case len(p.Open) > 0:
		b.WriteString("# Nothing of this is known here: name the namespaces with --target-namespaces.\n")
	default:
		b.WriteString("# No rule leads anywhere, so nothing is needed.\n")
	}
	for i := range p.Roles {
		for _, obj := range []any{p.Roles[i], p.Bindings[i]} {
			data, err := yaml.Marshal(obj)
			if err != nil {
				return fmt.Errorf("encode: %w", err)
			}
			b.WriteString("---\n" + string(data))
		}
	}
	_, err := fmt.Fprint(o.env.Out, b.String())
	return err
}
