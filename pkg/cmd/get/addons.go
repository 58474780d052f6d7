package get

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
)

type addOnOptions struct {
	env    cli.Env
	list   cli.Lister[inventory.AddOn]
	filter inventory.Filter
}

func newAddOns(env cli.Env) *cobra.Command {
	o := &addOnOptions{env: env}
	o.list = cli.Lister[inventory.AddOn]{
		Env: env, Out: cli.ListOutput(treeFormat), Columns: addOnColumns(env), None: "No add-ons found.",
		Kind:    cli.Kind[inventory.AddOn]{Name: "AddOn", Ref: addons.RefOf},
		Objects: schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"),
		Draw:    func(list []inventory.AddOn) error { return printTree(env, addOnTree(list)) },
	}
	cmd := &cobra.Command{
		Use:     "addons [ADDON...]",
		Aliases: []string{"addon", "managedclusteraddons", "managedclusteraddon"},
		Short:   "Show the add-ons of the managed clusters",
		Example: fmt.Sprintf(`  # What is installed where, and what does it wait for
  %[1]s get addons

  # One add-on on two clusters
  %[1]s get addons addon1 --clusters cluster1,cluster2 -o wide`, env.Name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: addons.CompleteNames(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.filter.Names = args
			return o.run(cmd.Context())
		},
	}
	works.AddNamespaceFlags(env, cmd, &o.filter.Clusters, "Only these clusters, separated by commas")
	o.list.AddTo(cmd, "Only add-ons with these labels")
	return cmd
}

func (o *addOnOptions) run(ctx context.Context) error {
	if err := works.ValidateClusters(&o.filter.Clusters); err != nil {
		return err
	}
	selector, err := o.list.Selector()
	if err != nil {
		return err
	}
	o.filter.Selector = selector
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	if err := addons.RequireHub(ctx, o.env, c); err != nil {
		return err
	}
	return o.list.Run(ctx, c, only(o.filter.Clusters), func(ctx context.Context, key cli.Key) ([]inventory.AddOn, error, error) {
		list, err := inventory.List(ctx, c, o.filter.At(key), o.env.Now(), o.env.Warn)
		if err != nil {
			return nil, nil, err
		}
		return list, addons.Missing(o.env, o.filter, list), nil
	})
}

// only is the namespace of what is on one cluster, and empty for several.
func only(clusters []string) string {
	if len(clusters) == 1 {
		return clusters[0]
	}
	return ""
}

func addOnColumns(env cli.Env) []cli.Column[inventory.AddOn] {
	now := env.Now
	type row = inventory.AddOn
	return []cli.Column[row]{
		{Header: "cluster", Value: func(a row) string { return a.Cluster }},
		{Header: "name", Value: func(a row) string { return a.Name }},
		{Header: "available", Value: func(a row) string { return a.Available }},
		{Header: "driver", Value: func(a row) string { return a.Driver }},
		{Header: "expires", Value: func(a row) string { return cli.Until(a.Expires, now()) }},
		{Header: "refreshed", Wide: true, Value: func(a row) string {
			if a.Refreshed == nil {
				return ""
			}
			return cli.Age(*a.Refreshed, now()) + " ago"
		}},
		{Header: "age", Value: func(a row) string { return cli.Age(a.Created, now()) }},
		{Header: "reason", Value: func(a row) string { return a.Reason }},
		{Header: "message", Wide: true, Rest: true, Value: func(a row) string { return a.Message }},
	}
}

// addOnTree is the add-ons of each cluster with the conditions that clusteradm shows.
func addOnTree(list []inventory.AddOn) []node {
	var clusters []node
	for i, a := range list {
		if i == 0 || list[i-1].Cluster != a.Cluster {
			clusters = append(clusters, node{text: "<" + a.Cluster + ">"})
		}
		addOn := node{text: "<" + a.Name + ">"}
		for _, kind := range []string{
			addonv1beta1.ManagedClusterAddOnConditionAvailable, addonv1beta1.ManagedClusterAddOnManifestApplied,
			addonv1beta1.ManagedClusterAddOnRegistrationApplied,
		} {
			addOn.below = append(addOn.below, leaf(kind, a.Conditions[kind]))
		}
		last := &clusters[len(clusters)-1]
		last.below = append(last.below, addOn)
	}
	return clusters
}
