package manager

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/labelindex"
)

// kind is a kind of configuration.
type kind = addonconfig.Kind

// config is one configuration of an add-on.
type config struct {
	kind     kind
	referent addonv1beta1.ConfigReferent
	// hash is empty until it is computed.
	hash string
	// generation is 0 where the add-on's own manager observes it.
	generation int64
}

func (c config) specHash() *addonv1beta1.ConfigSpecHash {
	return &addonv1beta1.ConfigSpecHash{ConfigReferent: c.referent, SpecHash: c.hash}
}

func kindOf(name string) schema.GroupVersionKind {
	return schema.GroupVersion(addonv1beta1.GroupVersion).WithKind(name)
}

// resolve fills in the hashes and generations of the configurations whose kind
// the manager reads. Those of other kinds are the business of the add-on's own
// manager, which writes them to the status; known has what it wrote.
func resolve(ctx context.Context, reader client.Reader, configs []config, known func(config) string) error {
	for i := range configs {
		c := &configs[i]
		object := addonconfig.Read(c.kind)
		if object == nil {
			c.hash = known(*c)
			continue
		}
		err := reader.Get(ctx, client.ObjectKey{Namespace: c.referent.Namespace, Name: c.referent.Name}, object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			continue
		}
		if c.hash, err = addonconfig.Hash(object); err != nil {
			return err
		}
		c.generation = object.GetGeneration()
	}
	return nil
}

// defaults are the default configurations of a ClusterManagementAddOn.
func defaults(cma *addonv1beta1.ClusterManagementAddOn) []config {
	var configs []config
	for _, c := range cma.Spec.DefaultConfigs {
		// The name stands for none in what was converted from v1alpha1.
		if c.Name != "" && c.Name != addonv1beta1.ReservedNoDefaultConfigName {
			configs = append(configs, config{kind: c.ConfigGroupResource, referent: c.ConfigReferent})
		}
	}
	return sorted(configs)
}

// override returns configs with those of every kind that over contains replaced
// by what over contains of it.
func override(configs []config, over []addonv1beta1.AddOnConfig) []config {
	replaced := func(c config) bool {
		return slices.ContainsFunc(over, func(o addonv1beta1.AddOnConfig) bool { return o.ConfigGroupResource == c.kind })
	}
	merged := slices.DeleteFunc(slices.Clone(configs), replaced)
	for _, o := range over {
		c := config{kind: o.ConfigGroupResource, referent: o.ConfigReferent}
		if !slices.Contains(merged, c) {
			merged = append(merged, c)
		}
	}
	return sorted(merged)
}

// sorted orders configurations by kind, so that a status does not change
// because of the order in which things were read.
func sorted(configs []config) []config {
	slices.SortStableFunc(configs, func(a, b config) int {
		return cmp.Or(cmp.Compare(a.kind.Group, b.kind.Group), cmp.Compare(a.kind.Resource, b.kind.Resource))
	})
	return configs
}

// placements returns the placements of a ClusterManagementAddOn's install strategy, or
// none.
func placements(cma *addonv1beta1.ClusterManagementAddOn) []addonv1beta1.PlacementStrategy {
	if !addonconfig.Managed(cma) || cma.Spec.InstallStrategy.Type != addonv1beta1.AddonInstallStrategyPlacements {
		return nil
	}
	return cma.Spec.InstallStrategy.Placements
}

// decided returns the clusters that were chosen for a placement. It returns false
// before the first decision: a placement that chooses no cluster has an empty one.
func decided(ctx context.Context, reader client.Reader, ref addonv1beta1.PlacementRef) (clusters []string, ok bool, err error) {
	decisions, err := decisionsFor(ctx, reader, ref)
	for i := range decisions {
		for _, decision := range decisions[i].Status.Decisions {
			clusters = append(clusters, decision.ClusterName)
		}
	}
	return clusters, len(decisions) > 0, err
}

// decisionsFor returns the decisions for a placement, which are the cache's.
func decisionsFor(ctx context.Context, reader client.Reader, ref addonv1beta1.PlacementRef) ([]clusterv1beta1.PlacementDecision, error) {
	var decisions clusterv1beta1.PlacementDecisionList
	err := reader.List(ctx, &decisions, client.UnsafeDisableDeepCopy, client.InNamespace(ref.Namespace),
		labelindex.Is(clusterv1beta1.PlacementLabel, ref.Name))
	return decisions.Items, err
}

// indexChosen is the cache's index of decisions by placement and cluster.
const indexChosen = "placement/cluster"

// chosen reports whether a cluster was chosen for a placement, without looking at those
// of others.
func chosen(ctx context.Context, reader client.Reader, ref addonv1beta1.PlacementRef, cluster string) (bool, error) {
	var decisions clusterv1beta1.PlacementDecisionList
	err := reader.List(ctx, &decisions, client.UnsafeDisableDeepCopy, client.InNamespace(ref.Namespace),
		client.MatchingFields{indexChosen: ref.Name + "/" + cluster})
	return len(decisions.Items) > 0, err
}

// indexDecisions lets decisionsFor and chosen find what they return.
func indexDecisions(ctx context.Context, indexer client.FieldIndexer) error {
	example := &clusterv1beta1.PlacementDecision{}
	if err := labelindex.Add(ctx, indexer, example, clusterv1beta1.PlacementLabel); err != nil {
		return err
	}
	return indexer.IndexField(ctx, example, indexChosen, func(object client.Object) []string {
		var keys []string
		for cluster := range clustersOf(object) {
			keys = append(keys, object.GetLabels()[clusterv1beta1.PlacementLabel]+"/"+cluster)
		}
		return keys
	})
}

// clustersOf returns the clusters of a decision.
func clustersOf(object client.Object) sets.Set[string] {
	clusters := sets.New[string]()
	if decision, ok := object.(*clusterv1beta1.PlacementDecision); ok {
		for _, d := range decision.Status.Decisions {
			clusters.Insert(d.ClusterName)
		}
	}
	return clusters
}
