package addonauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/permissions"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
)

type rbacOptions struct {
	env   cli.Env
	rules []string
	all   bool
	selection
}

func newRBAC(env cli.Env) *cobra.Command {
	o := &rbacOptions{env: env}
	cmd := &cobra.Command{
		Use:   "rbac --addon ADDON",
		Short: "Print the permissions of an add-on on the hub, to start from",
		Long: `Print the permissions of an add-on on the hub, to start from: a Role and a
RoleBinding in the namespace of each cluster, for the add-on of this cluster
alone, whether it authenticates with certificates or with tokens. A switch of
the driver needs no other binding.

With --cluster or --all-clusters the subject is the one in the status of the
ManagedClusterAddOn; run it with the context of the hub. With neither, nothing
is looked at, and the comments say what to fill in.`,
		Example: fmt.Sprintf(`  # Let addon1 keep its heartbeats and read its configuration
  %[1]s addon-auth rbac --addon addon1 --cluster cluster1 \
      --rule create:leases.coordination.k8s.io \
      --rule get,update:leases.coordination.k8s.io:addon1 | kubectl apply -f -

  # One ClusterRole, bound in the namespace of every cluster that has addon1
  %[1]s addon-auth rbac --addon addon1 --all-clusters`, env.Name),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringSliceVarP(&o.clusters, "cluster", "c", nil, "clusters to print the bindings for, separated by commas")
	cli.AliasFlag(cmd, "clusters", "cluster")
	cmd.Flags().StringSliceVar(&o.addOns, "addon", nil, "the add-on")
	cmd.Flags().BoolVar(&o.all, "all-clusters", false, "print the bindings for every cluster that has the add-on")
	cmd.Flags().StringArrayVar(&o.rules, "rule", nil, "a permission, as VERB,...:RESOURCE[.GROUP][/SUBRESOURCE],...[:NAME,...]; repeat the flag for more")
	cli.AliasFlag(cmd, "rules", "rule")
	_ = cmd.RegisterFlagCompletionFunc("cluster", fleet.CompleteClusters(env))
	_ = cmd.RegisterFlagCompletionFunc("addon", addons.CompleteNames(env))
	cmd.MarkFlagsMutuallyExclusive("cluster", "all-clusters")
	cli.NewEnum(new(cli.Format("yaml")), nil, "yaml").AddTo(cmd, "output", "o", "Output format")
	return cmd
}

func (o *rbacOptions) run(ctx context.Context) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	if len(filter.Names) != 1 {
		return cli.Usagef("name one add-on with --addon")
	}
	m := permissions.Manifests{AddOn: filter.Names[0], MadeBy: o.env.Elsewhere("addon-auth rbac")}
	for _, text := range o.rules {
		rule, err := permissions.ParseRule(text)
		if err != nil {
			return cli.Usagef("--rule: %v", err)
		}
		m.Rules = append(m.Rules, rule)
	}
	if m.Grants, err = o.grants(ctx, filter); err != nil {
		return err
	}
	render := m.PerCluster
	if o.all {
		render = m.Shared
	}
	text, err := render()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.env.Out, text)
	return err
}

// grants returns the grants of the clusters that the flags choose, or a template if they
// choose none.
func (o *rbacOptions) grants(ctx context.Context, filter inventory.Filter) ([]permissions.Grant, error) {
	addOn := filter.Names[0]
	if !o.all && len(filter.Clusters) == 0 {
		return []permissions.Grant{permissions.Template(addOn)}, nil
	}
	c, err := addons.Hub(ctx, o.env)
	if err != nil {
		return nil, err
	}
	if !o.all {
		return permissions.OnClusters(ctx, c, addOn, filter.Clusters)
	}
	grants, err := permissions.OnAllClusters(ctx, c, addOn)
	if missing, ok := errors.AsType[*permissions.NotInstalledError](err); ok {
		return nil, cli.NotFoundf("name a cluster with --cluster", "%v", missing)
	}
	return grants, err
}
