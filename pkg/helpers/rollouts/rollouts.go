package rollouts

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	sdkv1beta1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
)

// Result is the progress of a rollout.
type Result struct {
	// Release are the clusters to update now.
	Release []string
	// Recheck is when the time alone changes that, 0 for never.
	Recheck time.Duration
	// Numbers of clusters.
	Total, Done, Progressing, Failed, TimedOut int
}

// Evaluate returns the progress of a rollout to the clusters of statuses, by decision
// group. A strategy without a type is All.
func Evaluate(strategy clusterv1alpha1.RolloutStrategy, groups sdkv1beta1.ClusterGroupsMap, statuses []sdkv1alpha1.ClusterRolloutStatus) (Result, error) {
	strategy.Type = cmp.Or(strategy.Type, clusterv1alpha1.All)
	r := Result{Total: len(statuses)}
	slices.SortFunc(statuses, func(a, b sdkv1alpha1.ClusterRolloutStatus) int {
		return strings.Compare(a.ClusterName, b.ClusterName)
	})
	var started []sdkv1alpha1.ClusterRolloutStatus
	for _, status := range statuses {
		switch status.Status {
		case sdkv1alpha1.Succeeded:
			r.Done++
		case sdkv1alpha1.Progressing:
			r.Progressing++
		case sdkv1alpha1.Failed:
			r.Failed++
		case sdkv1alpha1.ToApply, sdkv1alpha1.TimeOut, sdkv1alpha1.Skip:
		}
		// The handler fills its steps with the first clusters in its input. Waiting
		// clusters are not in it, so that they never add to those that are already
		// updating.
		if status.Status != sdkv1alpha1.ToApply {
			started = append(started, status)
		}
	}
	tracker := sdkv1beta1.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups)
	handler, err := sdkv1alpha1.NewRolloutHandler[struct{}](tracker, nil)
	if err != nil {
		return r, err
	}
	_, result, err := handler.GetRolloutCluster(strategy, started)
	if err != nil {
		return r, err
	}
	r.TimedOut = len(result.ClustersTimeOut)
	if result.RecheckAfter != nil {
		r.Recheck = *result.RecheckAfter
	}
	for _, status := range result.ClustersToRollout {
		if status.Status == sdkv1alpha1.ToApply {
			r.Release = append(r.Release, status.ClusterName)
		}
	}
	return r, nil
}

// Groups returns the clusters that were decided for a placement by decision group.
// Groups are numbered without gaps, which Evaluate relies on.
func Groups(decisions []clusterv1beta1.PlacementDecision) sdkv1beta1.ClusterGroupsMap {
	groups := map[int32]sets.Set[string]{}
	name := map[int32]string{}
	last := int32(-1)
	for i := range decisions {
		labels := decisions[i].Labels
		// Without the label, or with another text, a decision is in the first group.
		number, _ := strconv.ParseUint(labels[clusterv1beta1.DecisionGroupIndexLabel], 10, 16)
		index := int32(number)
		if groups[index] == nil {
			groups[index], name[index] = sets.New[string](), labels[clusterv1beta1.DecisionGroupNameLabel]
		}
		for _, decision := range decisions[i].Status.Decisions {
			groups[index].Insert(decision.ClusterName)
		}
		last = max(last, index)
	}
	result := sdkv1beta1.ClusterGroupsMap{}
	for index := range last + 1 {
		clusters := groups[index]
		if clusters == nil {
			clusters = sets.New[string]()
		}
		result[sdkv1beta1.GroupKey{GroupName: name[index], GroupIndex: index}] = clusters
	}
	return result
}

// Restrict removes from the groups the clusters for which keep returns false.
func Restrict(groups sdkv1beta1.ClusterGroupsMap, keep func(string) bool) {
	for key, clusters := range groups {
		groups[key] = sets.New(slices.DeleteFunc(clusters.UnsortedList(), func(cluster string) bool { return !keep(cluster) })...)
	}
}

// Concurrency fills in how many clusters a strategy takes at a time, which is the size
// of the placement's decision groups unless the strategy says so.
func Concurrency(ctx context.Context, reader client.Reader, key client.ObjectKey, strategy clusterv1alpha1.RolloutStrategy) (clusterv1alpha1.RolloutStrategy, error) {
	rolling := *strategy.DeepCopy()
	if rolling.Type != clusterv1alpha1.Progressive {
		return rolling, nil
	}
	if rolling.Progressive == nil {
		rolling.Progressive = &clusterv1alpha1.RolloutProgressive{}
	}
	if rolling.Progressive.MaxConcurrency != (intstr.IntOrString{}) {
		return rolling, nil
	}
	var placement clusterv1beta1.Placement
	if err := reader.Get(ctx, key, &placement); client.IgnoreNotFound(err) != nil {
		return rolling, err
	}
	rolling.Progressive.MaxConcurrency = placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	return rolling, nil
}
