package get

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

type addOnOptions struct {
	env    cli.Env
	out    *cli.Output
	filter addons.Filter
}

func newAddOns(env cli.Env) *cobra.Command {
	o := &addOnOptions{
		env: env,
		out: cli.NewOutput(cli.TableFmt, cli.Wide, treeFormat, cli.Name),
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
	cmd.Flags().StringSliceVarP(&o.filter.Clusters, "clusters", "c", nil, "only these clusters, separated by commas")
	cli.AliasFlag(cmd, "cluster", "clusters")
	_ = cmd.RegisterFlagCompletionFunc("clusters", fleet.CompleteClusters(env))
	o.out.AddTo(cmd)
	return cmd
}

func (o *addOnOptions) run(ctx context.Context) error {
	for _, name := range o.filter.Clusters {
		if err := names.ValidateClusterName(name); err != nil {
			return cli.Usagef("--clusters: %v", err)
		}
	}
	c, err := addons.Hub(o.env)
	if err != nil {
		return err
	}
	list, err := addons.List(ctx, o.env, c, o.filter)
	if err != nil {
		return err
	}
	return cli.PrintFound(list, o.filter.Missing(o.env, list), o.print)
}

func (o *addOnOptions) print(list []addons.AddOn) error {
	switch {
	case o.out.Format == treeFormat:
		return printTree(o.env.Out, addOnTree(list))
	case len(list) == 0 && !o.out.Machine():
		o.env.Say("No add-ons found.")
		return nil
	}
	return cli.PrintList(o.env.Out, o.out, cli.Kind[addons.AddOn]{Name: "AddOn", Ref: addons.AddOn.Ref}, list, o.columns())
}

func (o *addOnOptions) columns() []cli.Column[addons.AddOn] {
	now := o.env.Clock.Now()
	type row = addons.AddOn
	return []cli.Column[row]{
		{Header: "cluster", Value: func(a row) string { return a.Cluster }},
		{Header: "name", Value: func(a row) string { return a.Name }},
		{Header: "available", Value: func(a row) string { return a.Available }},
		{Header: "driver", Value: func(a row) string { return a.Driver }},
		{Header: "expires", Value: func(a row) string { return cli.Until(a.Expires, now) }},
		{Header: "refreshed", Wide: true, Value: func(a row) string {
			if a.Refreshed == nil {
				return ""
			}
			return duration.ShortHumanDuration(max(now.Sub(*a.Refreshed), 0)) + " ago"
		}},
		{Header: "waiting", Value: func(a row) string { return a.Reason }},
		{Header: "age", Wide: true, Value: func(a row) string { return duration.ShortHumanDuration(now.Sub(a.Created)) }},
		{Header: "why", Wide: true, Value: func(a row) string { return a.Message }},
	}
}

// addOnTree is the add-ons of each cluster with the conditions that clusteradm shows.
func addOnTree(list []addons.AddOn) []node {
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
