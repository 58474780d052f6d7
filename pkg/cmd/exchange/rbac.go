package exchange

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/rules"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
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
	if err := o.look(ctx, source.Hub(), &known); err != nil {
		return err
	}
	p := policy.RBAC(cfg.Specs(), known)
	stale, err := orphaned(ctx, source.Hub(), p)
	if err != nil {
		return err
	}
	return o.print(source, p, stale)
}

// orphaned returns the namespaces of the hub that have permissions of rules that
// are gone.
func orphaned(ctx context.Context, hub client.Client, p policy.Permissions) ([]string, error) {
	if hub == nil {
		return nil, nil
	}
	var list rbacv1.RoleList
	if err := hub.List(ctx, &list, client.MatchingFields{"metadata.name": policy.RoleName}); err != nil {
		return nil, fmt.Errorf("permissions that are there: %w", err)
	}
	var out []string
	for i := range list.Items {
		namespace := list.Items[i].Namespace
		if !slices.ContainsFunc(p.Roles, func(r rbacv1.Role) bool { return r.Namespace == namespace }) {
			out = append(out, namespace)
		}
	}
	return out, nil
}

// look finds out what exists on the hub, as far as no flag says it.
func (o *rbacOptions) look(ctx context.Context, hub client.Client, known *policy.Known) error {
	if hub == nil {
		return nil
	}
	if known.Namespaces == nil {
		var list corev1.NamespaceList
		if err := hub.List(ctx, &list); err != nil {
			return fmt.Errorf("namespaces of the hub: %w", err)
		}
		for i := range list.Items {
			known.Namespaces = append(known.Namespaces, list.Items[i].Name)
		}
	}
	if known.Clusters == nil {
		var list clusterv1.ManagedClusterList
		if err := hub.List(ctx, &list); err != nil {
			return fmt.Errorf("managed clusters: %w", err)
		}
		for i := range list.Items {
			known.Clusters = append(known.Clusters, list.Items[i].Name)
		}
	}
	return nil
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
