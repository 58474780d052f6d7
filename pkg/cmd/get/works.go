package get

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

type workOptions struct {
	env      cli.Env
	list     cli.Lister[report.Work]
	names    []string
	clusters []string
}

func newWorks(env cli.Env) *cobra.Command {
	o := &workOptions{env: env}
	o.list = cli.Lister[report.Work]{
		Env: env, Out: cli.ListOutput(treeFormat), Columns: workColumns(env), None: "No ManifestWorks found.",
		Kind:    cli.Kind[report.Work]{Name: "Work", Ref: workRef},
		Objects: schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWork"),
		Draw:    func(list []report.Work) error { return printTree(env, workTree(list)) },
	}
	cmd := &cobra.Command{
		Use:     "works [WORK...]",
		Aliases: []string{"work", "manifestworks", "manifestwork"},
		Short:   "Show the ManifestWorks of the managed clusters",
		Example: fmt.Sprintf(`  # What is deployed where, and what is wrong with it
  %[1]s get works -o wide

  # Every manifest of one ManifestWork, with its feedback
  %[1]s get works app --clusters cluster1 -o tree

  # What becomes of a ManifestWork on all clusters
  %[1]s get works app --watch`, env.Name),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: works.CompleteNames(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
	}
	works.AddNamespaceFlags(env, cmd, &o.clusters, "Only these clusters, separated by commas")
	o.list.AddTo(cmd, "Only ManifestWorks with these labels")
	return cmd
}

func (o *workOptions) run(ctx context.Context) error {
	if err := works.ValidateClusters(&o.clusters); err != nil {
		return err
	}
	selector, err := o.list.Selector()
	if err != nil {
		return err
	}
	c, err := o.env.Kube.Client()
	if err != nil {
		return err
	}
	if err := works.Require(ctx, o.env, c); err != nil {
		return err
	}
	return o.list.Run(ctx, c, only(o.clusters), func(ctx context.Context, key cli.Key) ([]report.Work, error, error) {
		list, err := o.works(ctx, c, selector, key)
		if err != nil {
			return nil, nil, err
		}
		return list, o.missing(list), nil
	})
}

// works reads the works of the wanted clusters, of each in one request, or the one that key
// names.
func (o *workOptions) works(ctx context.Context, c client.Reader, selector labels.Selector, key cli.Key) ([]report.Work, error) {
	namespaces := o.clusters
	switch {
	case key.Namespace != "" && len(o.clusters) > 0 && !slices.Contains(o.clusters, key.Namespace):
		return nil, nil
	case key.Namespace != "":
		namespaces = []string{key.Namespace}
	case len(namespaces) == 0:
		namespaces = []string{""}
	}
	list := []report.Work{}
	for _, namespace := range namespaces {
		var found workv1.ManifestWorkList
		if err := c.List(ctx, &found, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, cli.Named(key.Name)); err != nil {
			return nil, fmt.Errorf("ManifestWorks: %w", err)
		}
		for i := range found.Items {
			if len(o.names) == 0 || slices.Contains(o.names, found.Items[i].Name) {
				list = append(list, report.Describe(&found.Items[i]))
			}
		}
	}
	slices.SortFunc(list, func(a, b report.Work) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// missing is the error about works that were named and are on no cluster.
func (o *workOptions) missing(list []report.Work) error {
	for _, name := range o.names {
		if slices.ContainsFunc(list, func(w report.Work) bool { return w.Name == name }) {
			continue
		}
		if len(o.clusters) > 0 {
			return works.NotFound(o.env, name, o.clusters)
		}
		return works.NotFound(o.env, name, []string{"any cluster"})
	}
	return nil
}

func workRef(w report.Work) cli.Ref {
	ref := works.Ref(w.Cluster, w.Name, w.Created)
	ref.Labels = w.Labels
	return ref
}

func workColumns(env cli.Env) []cli.Column[report.Work] {
	type row = report.Work
	now := env.Now
	return []cli.Column[row]{
		{Header: "cluster", Value: func(w row) string { return w.Cluster }},
		{Header: "name", Value: func(w row) string { return w.Name }},
		{Header: "manifests", Wide: true, Value: func(w row) string { return strconv.Itoa(len(w.Manifests)) }},
		{Header: "applied", Value: func(w row) string { return w.Applied }},
		{Header: "available", Value: func(w row) string { return w.Available }},
		{Header: "ready", Value: ready},
		{Header: "owner", Wide: true, Value: func(w row) string { return w.Owner }},
		{Header: "executor", Wide: true, Value: func(w row) string { return w.Executor }},
		{Header: "feedback", Wide: true, Value: func(w row) string { return excerpt.Of(strings.Join(w.Feedback(), ","), longestFeedback) }},
		{Header: "age", Value: func(w row) string { return cli.Age(w.Created, now()) }},
		{Header: "reason", Rest: true, Value: func(w row) string { return cmp.Or(w.Reason, strings.Join(w.Notes, "; ")) }},
	}
}

// longestFeedback is how much of the feedback a table shows; -o tree has all of it.
const longestFeedback = 40

// ready is how many of the resources that say whether they are ready are so.
func ready(w report.Work) string {
	n, all := w.CountReady()
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", n, all)
}

// workTree is the works of each cluster with the fields that clusteradm shows, and
// every manifest below.
func workTree(list []report.Work) []node {
	var clusters []node
	for i, w := range list {
		if i == 0 || list[i-1].Cluster != w.Cluster {
			clusters = append(clusters, node{text: "<" + w.Cluster + ">"})
		}
		last := &clusters[len(clusters)-1]
		last.below = append(last.below, node{text: "<" + w.Name + ">", below: slices.Concat(
			[]node{leaf("Number of Manifests", strconv.Itoa(len(w.Manifests)))},
			states(w.Applied, w.Available, w.Ready),
			[]node{{text: "<Resources>", below: resources(w)}},
		)})
	}
	return clusters
}

// states are what clusteradm shows, and what only our agents report.
func states(applied, available, ready string) []node {
	list := []node{leaf("Applied", applied), leaf("Available", available)}
	if ready != "" {
		list = append(list, leaf("Ready", ready))
	}
	return list
}

func resources(w report.Work) []node {
	var list []node
	for _, m := range w.Manifests {
		below := states(m.Applied, m.Available, m.Ready)
		for _, v := range m.Feedback {
			below = append(below, leaf(v.Name, v.Value))
		}
		if m.Message != "" {
			below = append(below, leaf("Message", m.Message))
		}
		list = append(list, node{text: "<" + m.String() + ">", below: below})
	}
	return list
}
