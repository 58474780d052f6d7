package get

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/approval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/inventory"
)

type clusterOptions struct {
	env     cli.Env
	list    cli.Lister[inventory.Cluster]
	names   []string
	set     string
	pending bool
}

func newClusters(env cli.Env) *cobra.Command {
	o := &clusterOptions{env: env}
	o.list = cli.Lister[inventory.Cluster]{
		Env: env, Out: cli.ListOutput(treeFormat), Columns: clusterColumns(env), None: "No clusters found.",
		Kind:    cli.Kind[inventory.Cluster]{Name: "Cluster", Ref: fleet.RefOf},
		Objects: schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"),
		Draw:    func(clusters []inventory.Cluster) error { return printTree(env, clusterTree(clusters)) },
	}
	cmd := &cobra.Command{
		Use:     "clusters [CLUSTER...]",
		Aliases: []string{"cluster", "managedclusters", "managedcluster"},
		Short:   "Show the managed clusters of the hub",
		Example: fmt.Sprintf(`  # Which clusters are not available, and why
  %[1]s get clusters -o wide

  # Who waits to be accepted, and with which key
  %[1]s get clusters --pending \
      -o 'custom-columns=NAME:.metadata.name,KEY:.requests[*].fingerprint'

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
	cmd.Flags().BoolVar(&o.pending, "pending", false, "only clusters that wait to be accepted")
	o.list.AddTo(cmd, "only clusters with these labels")
	return cmd
}

func (o *clusterOptions) run(ctx context.Context) error {
	selector, err := o.list.Selector()
	if err != nil {
		return err
	}
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	if err := fleet.RequireHub(ctx, o.env, c); err != nil {
		return err
	}
	return o.list.Run(ctx, c, "", func(ctx context.Context, key cli.Key) ([]inventory.Cluster, error, error) {
		clusters, err := o.clusters(ctx, c, selector, key.Name)
		if err != nil {
			return nil, nil, err
		}
		return clusters, o.missing(ctx, c, clusters), nil
	})
}

// missing is the error about clusters that were named and are not there.
func (o *clusterOptions) missing(ctx context.Context, c client.Client, clusters []inventory.Cluster) error {
	without := slices.DeleteFunc(slices.Clone(o.names), func(name string) bool {
		return slices.ContainsFunc(clusters, func(c inventory.Cluster) bool { return c.Name == name })
	})
	if len(without) == 0 {
		return nil
	}
	return cli.NotFoundf(fleet.NearCluster(ctx, c, without[0], ""), "the hub knows no cluster %s", strings.Join(without, ", "))
}

// clusters reads the wanted clusters, or of these the one called name.
func (o *clusterOptions) clusters(ctx context.Context, c client.Client, selector labels.Selector, name string) ([]inventory.Cluster, error) {
	var list clusterv1.ManagedClusterList
	if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}, cli.Named(name)); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	requests, err := approval.Requests(ctx, c, name)
	if err != nil {
		// The list is worth having without the right to read requests.
		o.env.Warn("requests are not shown: %v", err)
	}
	var clusters []inventory.Cluster
	for i := range list.Items {
		obj := &list.Items[i]
		if o.matches(obj) {
			own := slices.DeleteFunc(slices.Clone(requests), func(r approval.Request) bool { return r.Cluster != obj.Name })
			clusters = append(clusters, inventory.Describe(o.env.Drivers, obj, own))
		}
	}
	if o.list.Out.Machine() { // Tables have no room for them.
		o.addGranted(ctx, c, clusters)
	}
	return clusters, nil
}

// addGranted adds what the hub granted to clusters that it knows by an identity.
func (o *clusterOptions) addGranted(ctx context.Context, c client.Reader, clusters []inventory.Cluster) {
	if !slices.ContainsFunc(clusters, func(c inventory.Cluster) bool { return c.Identity != "" }) {
		return
	}
	granted, err := inventory.Granted(ctx, c, o.env.Drivers)
	if err != nil {
		// The list is worth having without the right to read records.
		o.env.Warn("what was granted to clusters is not shown: %v", err)
	}
	for i := range clusters {
		clusters[i].Granted = granted[clusters[i].Name]
	}
}

func (o *clusterOptions) matches(obj *clusterv1.ManagedCluster) bool {
	return (len(o.names) == 0 || slices.Contains(o.names, obj.Name)) &&
		(o.set == "" || obj.Labels[names.LabelClusterSet] == o.set) &&
		(!o.pending || !obj.Spec.HubAcceptsClient)
}

func clusterColumns(env cli.Env) []cli.Column[inventory.Cluster] {
	now := env.Now
	type row = inventory.Cluster
	return []cli.Column[row]{
		{Header: "name", Value: func(c row) string { return c.Name }},
		{Header: "accepted", Value: func(c row) string { return cli.YesNo(c.Accepted) }},
		{Header: "joined", Value: func(c row) string { return cli.YesNo(c.Joined) }},
		{Header: "available", Value: func(c row) string { return c.Available }},
		{Header: "state", Value: func(c row) string { return string(c.State) }},
		{Header: "version", Wide: true, Value: func(c row) string { return c.Version }},
		{Header: "clusterset", Wide: true, Value: func(c row) string { return c.ClusterSet }},
		{Header: "cpu", Wide: true, Value: func(c row) string { return c.CPU }},
		{Header: "memory", Wide: true, Value: func(c row) string { return gibibytes(c.Memory) }},
		{Header: "auth", Wide: true, Value: func(c row) string { return c.Auth }},
		{Header: "eks cluster", Wide: true, Value: func(c row) string { return identity(env.Drivers, c) }},
		{Header: "cred-expires", Wide: true, Value: func(c row) string { return cli.Until(c.CredentialExpires, now()) }},
		{Header: "keys", Wide: true, Value: keys},
		{Header: "age", Value: func(c row) string { return cli.Age(c.Created, now()) }},
		{Header: "reason", Rest: true, Value: func(c row) string { return c.Reason }},
	}
}

// gibibytes is a quantity of memory in Gi, with one decimal at most.
func gibibytes(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(math.Round(q.AsApproximateFloat64()/(1<<30)*10)/10, 'f', -1, 64) + "Gi"
}

// identity is the one that a driver knows the cluster by, as short as the driver has it.
func identity(known driver.Catalog, c inventory.Cluster) string {
	if by := known.Identifier(driver.AuthType(c.Auth)); by != nil {
		return by.Short(c.Identity)
	}
	return c.Identity
}

// keys is the key of the cluster's credential, or those that wait for a decision
// while it has none. The machine formats have the whole fingerprints.
func keys(c inventory.Cluster) string {
	list := c.PendingKeys()
	if c.Key != "" {
		list = []string{c.Key}
	}
	short := make([]string, len(list))
	for i, key := range list {
		short[i] = cli.Short(key)
	}
	return strings.Join(short, ",")
}

// clusterTree is the clusters as clusteradm shows them.
func clusterTree(clusters []inventory.Cluster) []node {
	nodes := make([]node, len(clusters))
	for i, c := range clusters {
		nodes[i] = node{text: "<" + c.Name + ">", below: []node{
			leaf("Accepted", strconv.FormatBool(c.Accepted)),
			leaf("Available", c.Available),
			leaf("ClusterSet", c.ClusterSet),
			leaf("KubernetesVersion", c.Version),
			leaf("Capacity.Cpu", c.CPU),
			leaf("Capacity.Memory", c.Memory),
		}}
	}
	return nodes
}
