package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// Choice says which clusters get a copy of a work. Exactly one of Clusters, Selector
// and Placement is set.
type Choice struct {
	// Clusters are named.
	Clusters []string
	// Selector chooses accepted clusters by their labels.
	Selector labels.Selector
	// Replicas is how many of the clusters that match Selector get a copy; 0 is all.
	Replicas int
	// Placement is the placement whose decisions name the clusters.
	Placement client.ObjectKey
}

// Targets are the clusters of a work.
type Targets struct {
	// Clusters get a copy.
	Clusters []string
	// Left are the clusters that have a copy without being chosen any more. Named
	// clusters leave none.
	Left []string
}

// ClustersError says that clusters cannot get a work.
type ClustersError struct {
	Clusters []string
	// Problem is why, as the end of a sentence.
	Problem string
	// Unknown says that the hub has no such clusters.
	Unknown bool
}

// Error implements error.
func (e *ClustersError) Error() string {
	return fmt.Sprintf("%s: %s", strings.Join(e.Clusters, ", "), e.Problem)
}

// TooFewError says that fewer clusters match a selector than there are to be replicas.
type TooFewError struct{ Want, Have int }

// Error implements error.
func (e *TooFewError) Error() string {
	return fmt.Sprintf("%d replicas need %d accepted clusters, and %d match the labels", e.Want, e.Want, e.Have)
}

// NoDecisionError says that a placement has not been decided.
type NoDecisionError struct{ Placement client.ObjectKey }

// Error implements error.
func (e *NoDecisionError) Error() string {
	return fmt.Sprintf("placement %s has no decisions", e.Placement)
}

// Choose returns the clusters of the work called name.
func (h Hub) Choose(ctx context.Context, name string, choice Choice) (Targets, error) {
	if len(choice.Clusters) > 0 {
		return Targets{Clusters: choice.Clusters}, h.requireAccepted(ctx, choice.Clusters)
	}
	copies, err := h.copies(ctx, name)
	if err != nil {
		return Targets{}, err
	}
	var chosen []string
	if choice.Selector != nil {
		chosen, err = h.matching(ctx, choice, copies)
	} else {
		chosen, err = h.decided(ctx, choice.Placement)
	}
	if err != nil {
		return Targets{}, err
	}
	return Targets{Clusters: chosen, Left: sets.List(copies.Difference(sets.New(chosen...)))}, nil
}

// requireAccepted is an error unless the hub has accepted all of the clusters.
func (h Hub) requireAccepted(ctx context.Context, clusters []string) error {
	var unknown, denied []string
	for _, name := range clusters {
		cluster := &clusterv1.ManagedCluster{}
		err := h.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("cluster %s: %w", name, err)
		case err != nil:
			unknown = append(unknown, name)
		case !eligible(cluster):
			denied = append(denied, name)
		}
	}
	if len(unknown) > 0 {
		return &ClustersError{Clusters: unknown, Problem: "the hub knows no such cluster", Unknown: true}
	}
	if len(denied) > 0 {
		return &ClustersError{Clusters: denied, Problem: "not accepted by the hub, or being deleted"}
	}
	return nil
}

// eligible reports whether a cluster can get a new work.
func eligible(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Spec.HubAcceptsClient && cluster.DeletionTimestamp.IsZero()
}

// copies are the clusters that have a work of that name which no other object owns.
func (h Hub) copies(ctx context.Context, name string) (sets.Set[string], error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWorkList"))
	if err := h.Client.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return nil, fmt.Errorf("ManifestWorks: %w", err)
	}
	clusters := sets.New[string]()
	for i := range list.Items {
		if report.Owner(&list.Items[i]) == "" {
			clusters.Insert(list.Items[i].Namespace)
		}
	}
	return clusters, nil
}

// matching returns the clusters with the wanted labels. With a number of replicas,
// clusters that have a copy come first, so that running a command again moves nothing;
// then those that are available; then by name.
func (h Hub) matching(ctx context.Context, choice Choice, copies sets.Set[string]) ([]string, error) {
	var list clusterv1.ManagedClusterList
	if err := h.Client.List(ctx, &list, client.MatchingLabelsSelector{Selector: choice.Selector}); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(c clusterv1.ManagedCluster) bool { return !eligible(&c) })
	if choice.Replicas > 0 {
		slices.SortFunc(list.Items, func(a, b clusterv1.ManagedCluster) int {
			return cmp.Or(cmp.Compare(rank(&a, copies), rank(&b, copies)), cmp.Compare(a.Name, b.Name))
		})
		if len(list.Items) < choice.Replicas {
			return nil, &TooFewError{Want: choice.Replicas, Have: len(list.Items)}
		}
		list.Items = list.Items[:choice.Replicas]
	}
	var clusters []string
	for i := range list.Items {
		clusters = append(clusters, list.Items[i].Name)
	}
	slices.Sort(clusters)
	return clusters, nil
}

// rank orders clusters by how well they suit a replica.
func rank(cluster *clusterv1.ManagedCluster, copies sets.Set[string]) int {
	switch {
	case copies.Has(cluster.Name):
		return 0
	case apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable):
		return 1
	}
	return 2
}

// decided returns the clusters that a placement chose. A placement that chose none has
// an empty decision.
func (h Hub) decided(ctx context.Context, placement client.ObjectKey) ([]string, error) {
	var decisions clusterv1beta1.PlacementDecisionList
	err := h.Client.List(ctx, &decisions, client.InNamespace(placement.Namespace),
		client.MatchingLabels{clusterv1beta1.PlacementLabel: placement.Name})
	if err != nil {
		return nil, fmt.Errorf("decisions of placement %s: %w", placement, err)
	}
	if len(decisions.Items) == 0 {
		return nil, &NoDecisionError{Placement: placement}
	}
	var clusters []string
	for i := range decisions.Items {
		for _, decision := range decisions.Items[i].Status.Decisions {
			clusters = append(clusters, decision.ClusterName)
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}
