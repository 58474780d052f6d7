package get

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/eks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
)

type clusterOptions struct {
	env      cli.Env
	out      *cli.Output
	names    []string
	set      string
	selector string
	pending  bool
}

func newClusters(env cli.Env) *cobra.Command {
	o := &clusterOptions{
		env: env,
		out: cli.NewOutput(cli.TableFmt, cli.Wide, treeFormat, cli.Name),
	}
	cmd := &cobra.Command{
		Use:     "clusters [CLUSTER...]",
		Aliases: []string{"cluster", "managedclusters", "managedcluster"},
		Short:   "Show the managed clusters of the hub",
		Example: fmt.Sprintf(`  # Who waits to be accepted, and with which key
  %[1]s get clusters --pending -o wide

  # When does the credential of cluster1 end
  %[1]s get clusters cluster1 -o 'jsonpath={.items[0].credentialExpires}'`, env.Name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: fleet.CompleteClusters(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.set, "clusterset", "", "only clusters of this cluster set")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "only clusters with these labels")
	cmd.Flags().BoolVar(&o.pending, "pending", false, "only clusters that wait to be accepted")
	o.out.AddTo(cmd)
	return cmd
}

func (o *clusterOptions) run(ctx context.Context) error {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return cli.Usagef("--selector: %v", err)
	}
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	if err := fleet.RequireHub(o.env, c); err != nil {
		return err
	}
	clusters, err := o.clusters(ctx, c, selector)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(o.names), func(name string) bool {
		return slices.ContainsFunc(clusters, func(c fleet.Cluster) bool { return c.Name == name })
	})
	if len(missing) > 0 {
		err = cli.NotFoundf(fleet.NearCluster(ctx, c, missing[0], ""), "the hub knows no cluster %s", strings.Join(missing, ", "))
	}
	return cli.PrintFound(clusters, err, o.print)
}

func (o *clusterOptions) clusters(ctx context.Context, c client.Client, selector labels.Selector) ([]fleet.Cluster, error) {
	var list clusterv1.ManagedClusterList
	if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	requests, err := approval.Requests(ctx, c, "")
	if err != nil {
		// The list is worth having without the right to read requests.
		o.env.Warn("requests are not shown: %v", err)
	}
	var clusters []fleet.Cluster
	for i := range list.Items {
		obj := &list.Items[i]
		if o.matches(obj) {
			own := slices.DeleteFunc(slices.Clone(requests), func(r approval.Request) bool { return r.Cluster != obj.Name })
			clusters = append(clusters, fleet.Describe(obj, own))
		}
	}
	o.addRoles(ctx, c, clusters)
	return clusters, nil
}

// addRoles adds the IAM roles of clusters that register by AWS IAM.
func (o *clusterOptions) addRoles(ctx context.Context, c client.Reader, clusters []fleet.Cluster) {
	if !slices.ContainsFunc(clusters, func(c fleet.Cluster) bool { return c.ARN != "" }) {
		return
	}
	roles, err := eks.Roles(ctx, c)
	if err != nil {
		// The list is worth having without the right to read records.
		o.env.Warn("IAM roles are not shown: %v", err)
	}
	for i := range clusters {
		if role, ok := roles[clusters[i].Name]; ok {
			clusters[i].RoleARN = role.String()
		}
	}
}

func (o *clusterOptions) matches(obj *clusterv1.ManagedCluster) bool {
	return (len(o.names) == 0 || slices.Contains(o.names, obj.Name)) &&
		(o.set == "" || obj.Labels[names.LabelClusterSet] == o.set) &&
		(!o.pending || !obj.Spec.HubAcceptsClient)
}

func (o *clusterOptions) print(clusters []fleet.Cluster) error {
	switch {
	case o.out.Format == treeFormat:
		nodes := make([]node, len(clusters))
		for i, c := range clusters {
			nodes[i] = tree(c)
		}
		return printTree(o.env.Out, nodes)
	case len(clusters) == 0 && !o.out.Machine():
		o.env.Say("No clusters found.")
		return nil
	}
	return cli.PrintList(o.env.Out, o.out, cli.Kind[fleet.Cluster]{Name: "Cluster", Ref: fleet.Cluster.Ref}, clusters, o.columns())
}

func (o *clusterOptions) columns() []cli.Column[fleet.Cluster] {
	now := o.env.Clock.Now()
	return []cli.Column[fleet.Cluster]{
		{Header: "name", Value: func(c fleet.Cluster) string { return c.Name }},
		{Header: "accepted", Value: func(c fleet.Cluster) string { return cli.YesNo(c.Accepted) }},
		{Header: "joined", Value: func(c fleet.Cluster) string { return cli.YesNo(c.Joined) }},
		{Header: "available", Value: func(c fleet.Cluster) string { return c.Available }},
		{Header: "state", Value: func(c fleet.Cluster) string { return string(c.State) }},
		{Header: "clusterset", Value: func(c fleet.Cluster) string { return c.ClusterSet }},
		{Header: "cpu", Value: func(c fleet.Cluster) string { return c.CPU }},
		{Header: "memory", Value: func(c fleet.Cluster) string { return c.Memory }},
		{Header: "version", Value: func(c fleet.Cluster) string { return c.Version }},
		{Header: "age", Wide: true, Value: func(c fleet.Cluster) string { return duration.ShortHumanDuration(now.Sub(c.Created)) }},
		{Header: "auth", Wide: true, Value: func(c fleet.Cluster) string { return c.Auth }},
		{Header: "arn", Wide: true, Value: func(c fleet.Cluster) string { return c.ARN }},
		{Header: "role", Wide: true, Value: func(c fleet.Cluster) string { return c.RoleARN }},
		{Header: "cred-expires", Wide: true, Value: func(c fleet.Cluster) string { return cli.Until(c.CredentialExpires, now) }},
		{Header: "keys", Wide: true, Value: keys},
		{Header: "reason", Wide: true, Value: func(c fleet.Cluster) string { return c.Reason }},
	}
}

// keys is the key of the cluster's credential, or those that wait for a decision
// while it has none.
func keys(c fleet.Cluster) string {
	if c.Key != "" {
		return c.Key
	}
	return strings.Join(c.PendingKeys(), ",")
}

// tree is the cluster as clusteradm shows it.
func tree(c fleet.Cluster) node {
	return node{text: "<" + c.Name + ">", below: []node{
		leaf("Accepted", strconv.FormatBool(c.Accepted)),
		leaf("Available", c.Available),
		leaf("ClusterSet", c.ClusterSet),
		leaf("KubernetesVersion", c.Version),
		leaf("Capacity.Cpu", c.CPU),
		leaf("Capacity.Memory", c.Memory),
	}}
}
