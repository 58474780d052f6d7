package manager

import (
	"fmt"
	"maps"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	sdkv1alpha1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	sdkv1beta1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/rollouts"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// rollout is the progress of a placement's configurations.
type rollout struct {
	rollouts.Result

	// release are the add-ons that are due.
	release []*addonv1beta1.ManagedClusterAddOn
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

// status returns the progress of a candidate.
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

// evaluate returns the progress of a rollout to candidates, by decision group.
func evaluate(strategy clusterv1alpha1.RolloutStrategy, groups sdkv1beta1.ClusterGroupsMap, candidates map[string]candidate) (rollout, error) {
	var statuses []sdkv1alpha1.ClusterRolloutStatus
	for _, c := range candidates {
		statuses = append(statuses, c.status())
	}
	result, err := rollouts.Evaluate(strategy, groups, statuses)
	r := rollout{Result: result}
	for _, cluster := range result.Release {
		r.release = append(r.release, candidates[cluster].addOn)
	}
	return r, err
}

// report writes the progress of the rollout into a progression.
func (r rollout) report(progression *addonv1beta1.InstallProgression, now time.Time) {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnConditionProgressing, Status: metav1.ConditionTrue,
		Reason: addonv1beta1.ProgressingReasonProgressing, LastTransitionTime: metav1.NewTime(now),
		Message: fmt.Sprintf("%d of %d clusters have the configurations, %d are getting them, %d failed, %d timed out",
			r.Done, r.Total, r.Progressing, r.Failed, r.TimedOut),
	}
	if r.Total > 0 && r.Done == r.Total {
		condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted
		condition.Message = fmt.Sprintf("%d of %d clusters have the configurations", r.Done, r.Total)
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
