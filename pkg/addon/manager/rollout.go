package manager

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	sdkv1beta1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// rollout is how far a placement's configurations have come.
type rollout struct {
	// release are the add-ons whose turn it is.
	release []*addonv1beta1.ManagedClusterAddOn
	// recheck is when the time alone changes that, 0 for never.
	recheck time.Duration
	// Numbers of clusters.
	total, done, progressing, failed, timedOut int
}

// inSteps reports whether a placement does not configure all of its clusters at once.
func inSteps(strategy *addonv1beta1.PlacementStrategy) bool {
	return strategy != nil && strategy.RolloutStrategy.Type != "" && strategy.RolloutStrategy.Type != clusterv1alpha1.All
}

// sameConfigs reports whether two lists want the same versions of configurations.
func sameConfigs(a, b []addonv1beta1.ConfigReference) bool {
	return maps.Equal(addonconfig.Hashes(a), addonconfig.Hashes(b))
}

// candidate is an add-on that takes part in a rollout, and what it is to have.
type candidate struct {
	addOn *addonv1beta1.ManagedClusterAddOn
	want  []addonv1beta1.ConfigReference
}

// status is how far a candidate has come.
func (c candidate) status() sdkv1alpha1.ClusterRolloutStatus {
	status := sdkv1alpha1.ClusterRolloutStatus{ClusterName: c.addOn.Namespace, Status: sdkv1alpha1.Progressing}
	condition := apimeta.FindStatusCondition(c.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	var reason string
	if condition != nil {
		reason, status.LastTransitionTime = condition.Reason, &condition.LastTransitionTime
	}
	switch {
	case !sameConfigs(c.want, c.addOn.Status.ConfigReferences):
		return sdkv1alpha1.ClusterRolloutStatus{ClusterName: c.addOn.Namespace, Status: sdkv1alpha1.ToApply}
	case c.applied():
		status.Status = sdkv1alpha1.Succeeded
		if reason != addonv1beta1.ProgressingReasonCompleted {
			status.LastTransitionTime = nil
		}
	case reason == addonv1beta1.ProgressingReasonFailed:
		status.Status = sdkv1alpha1.Failed
	case reason != addonv1beta1.ProgressingReasonProgressing:
		status.LastTransitionTime = nil
	}
	return status
}

// applied reports whether the add-on has applied what it is to have.
func (c candidate) applied() bool {
	return !slices.ContainsFunc(c.addOn.Status.ConfigReferences, func(r addonv1beta1.ConfigReference) bool {
		return r.DesiredConfig != nil && (r.DesiredConfig.SpecHash == "" || r.LastAppliedConfig == nil || *r.LastAppliedConfig != *r.DesiredConfig)
	})
}

// evaluate returns how far a rollout to candidates, by decision group, has come.
func evaluate(strategy clusterv1alpha1.RolloutStrategy, groups sdkv1beta1.ClusterGroupsMap, candidates map[string]candidate) (rollout, error) {
	strategy.Type = cmp.Or(strategy.Type, clusterv1alpha1.All)
	r := rollout{total: len(candidates)}
	var started []sdkv1alpha1.ClusterRolloutStatus
	for _, cluster := range slices.Sorted(maps.Keys(candidates)) {
		status := candidates[cluster].status()
		switch status.Status {
		case sdkv1alpha1.Succeeded:
			r.done++
		case sdkv1alpha1.Progressing:
			r.progressing++
		case sdkv1alpha1.Failed:
			r.failed++
		case sdkv1alpha1.ToApply, sdkv1alpha1.TimeOut, sdkv1alpha1.Skip:
		}
		// The handler fills its steps with those that it is given first. Those that
		// wait are not among them, so that they never come in addition to those that
		// are on their way.
		if status.Status != sdkv1alpha1.ToApply {
			started = append(started, status)
		}
	}
	handler, err := sdkv1alpha1.NewRolloutHandler[candidate](sdkv1beta1.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups), nil)
	if err != nil {
		return r, err
	}
	_, result, err := handler.GetRolloutCluster(strategy, started)
	if err != nil {
		return r, err
	}
	r.timedOut = len(result.ClustersTimeOut)
	if result.RecheckAfter != nil {
		r.recheck = *result.RecheckAfter
	}
	for _, status := range result.ClustersToRollout {
		if status.Status == sdkv1alpha1.ToApply {
			r.release = append(r.release, candidates[status.ClusterName].addOn)
		}
	}
	return r, nil
}

// grouped returns the clusters that were decided for a placement by decision group.
// Groups are numbered without gaps, which the handler relies on.
func grouped(decisions []clusterv1beta1.PlacementDecision) sdkv1beta1.ClusterGroupsMap {
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

// restrict leaves only the clusters in groups that keep.
func restrict(groups sdkv1beta1.ClusterGroupsMap, keep func(string) bool) {
	for key, clusters := range groups {
		groups[key] = sets.New(slices.DeleteFunc(clusters.UnsortedList(), func(cluster string) bool { return !keep(cluster) })...)
	}
}

// report writes into a progression how far its rollout has come.
func (r rollout) report(progression *addonv1beta1.InstallProgression, now time.Time) {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnConditionProgressing, Status: metav1.ConditionTrue,
		Reason: addonv1beta1.ProgressingReasonProgressing, LastTransitionTime: metav1.NewTime(now),
		Message: fmt.Sprintf("%d of %d clusters have the configurations, %d are getting them, %d failed, %d timed out",
			r.done, r.total, r.progressing, r.failed, r.timedOut),
	}
	if r.total > 0 && r.done == r.total {
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted
		condition.Message = fmt.Sprintf("%d of %d clusters have the configurations", r.done, r.total)
		for i := range progression.ConfigReferences {
			c := &progression.ConfigReferences[i]
			c.LastAppliedConfig, c.LastKnownGoodConfig = c.DesiredConfig.DeepCopy(), c.DesiredConfig.DeepCopy()
		}
	}
	apimeta.SetStatusCondition(&progression.Conditions, condition)
}

// reportInvalid says in a progression why its rollout does not proceed.
func reportInvalid(progression *addonv1beta1.InstallProgression, err error, now time.Time) {
	if err == nil {
		apimeta.RemoveStatusCondition(&progression.Conditions, names.ConditionRolloutStrategySupported)
		return
	}
	apimeta.SetStatusCondition(&progression.Conditions, metav1.Condition{
		Type: names.ConditionRolloutStrategySupported, Status: metav1.ConditionFalse, Reason: names.ReasonRolloutStrategyInvalid,
		Message:            fmt.Sprintf("The rollout does not proceed: %v; correct the rolloutStrategy of the placement", err),
		LastTransitionTime: metav1.NewTime(now),
	})
}

// concurrency fills in how many clusters a placement configures at a time, which is the
// size of its decision groups unless the strategy says so.
func concurrency(ctx context.Context, reader client.Reader, strategy addonv1beta1.PlacementStrategy) (clusterv1alpha1.RolloutStrategy, error) {
	rolling := *strategy.RolloutStrategy.DeepCopy()
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
	err := reader.Get(ctx, client.ObjectKey{Namespace: strategy.Namespace, Name: strategy.Name}, &placement)
	if client.IgnoreNotFound(err) != nil {
		return rolling, err
	}
	rolling.Progressive.MaxConcurrency = placement.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	return rolling, nil
}
