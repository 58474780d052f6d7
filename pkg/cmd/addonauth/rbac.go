package addonauth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
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
	p := permissions{addOn: filter.Names[0], by: o.env.Elsewhere("addon-auth rbac"), shared: o.all}
	for _, text := range o.rules {
		rule, err := parseRule(text)
		if err != nil {
			return err
		}
		p.rules = append(p.rules, rule)
	}
	switch {
	case o.all || len(filter.Clusters) > 0:
		if p.grants, err = o.grants(ctx, filter); err != nil {
			return err
		}
	default:
		p.grants = []grant{{cluster: placeholder, subjects: subjectsOf(placeholder, p.addOn, nil), unknown: true}}
	}
	text, err := p.render()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.env.Out, text)
	return err
}

// grants looks up whom the add-on is on each cluster.
func (o *rbacOptions) grants(ctx context.Context, filter inventory.Filter) ([]grant, error) {
	c, err := addons.Hub(ctx, o.env)
	if err != nil {
		return nil, err
	}
	objs, err := inventory.Objects(ctx, c, filter)
	if err != nil {
		return nil, err
	}
	if o.all {
		for _, obj := range objs {
			filter.Clusters = append(filter.Clusters, obj.Namespace)
		}
		if len(objs) == 0 {
			return nil, cli.NotFoundf("name a cluster with --cluster", "no cluster has an add-on %s", filter.Names[0])
		}
	}
	var out []grant
	for _, cluster := range filter.Clusters {
		i := slices.IndexFunc(objs, func(obj *addonv1beta1.ManagedClusterAddOn) bool { return obj.Namespace == cluster })
		if i < 0 {
			out = append(out, grant{cluster: cluster, subjects: subjectsOf(cluster, filter.Names[0], nil), unknown: true})
			continue
		}
		config := inventory.KubeClient(objs[i])
		out = append(out, grant{
			cluster: cluster, subjects: subjectsOf(cluster, filter.Names[0], config),
			unknown: config == nil || config.Subject.User == "",
		})
	}
	return out, nil
}

// parseRule reads VERBS:RESOURCES[:NAMES]. All resources of a rule are of one
// API group.
func parseRule(text string) (rbacv1.PolicyRule, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return rbacv1.PolicyRule{}, cli.Usagef("--rule: %q is not VERBS:RESOURCES[:NAMES], such as get,list:configmaps", text)
	}
	rule := rbacv1.PolicyRule{Verbs: strings.Split(parts[0], ",")}
	for resource := range strings.SplitSeq(parts[1], ",") {
		resource, sub, hasSub := strings.Cut(resource, "/")
		resource, group, _ := strings.Cut(resource, ".")
		if hasSub {
			resource += "/" + sub
		}
		rule.Resources = append(rule.Resources, resource)
		if !slices.Contains(rule.APIGroups, group) {
			rule.APIGroups = append(rule.APIGroups, group)
		}
	}
	if len(parts) == 3 {
		rule.ResourceNames = strings.Split(parts[2], ",")
	}
	return rule, checkRule(text, rule)
}

func checkRule(text string, rule rbacv1.PolicyRule) error {
	all := slices.Concat(rule.Verbs, rule.Resources, rule.ResourceNames)
	switch {
	case slices.Contains(all, ""):
		return cli.Usagef("--rule: %q has an empty word", text)
	case len(rule.APIGroups) > 1:
		return cli.Usagef("--rule: %q names resources of several API groups; give each group a rule of its own", text)
	case slices.Contains(all, "*") || rule.APIGroups[0] == "*":
		return cli.Usagef("--rule: %q has a wildcard, which grants unlimited permissions; name what the add-on needs", text)
	case len(rule.ResourceNames) > 0 && slices.Contains(rule.Verbs, "create") && !strings.Contains(rule.Resources[0], "/"):
		return cli.Usagef("--rule: %q cannot work: create has no name to compare; give it a rule of its own without names", text)
	}
	return nil
}
