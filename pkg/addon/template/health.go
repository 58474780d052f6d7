package template

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/internal/addonwork"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// manifestApplied returns the condition that reports whether the works of an add-on were
// applied, nil while the work agent has not said.
func manifestApplied(wanted int, works []*workv1.ManifestWork) *metav1.Condition {
	condition := &metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
		Reason: addonv1beta1.AddonManifestAppliedReasonManifestsApplied, Message: names.MessageManifestsApplied,
	}
	if wanted == 0 {
		condition.Message = names.MessageNoManifests
		return condition
	}
	complete := len(works) == wanted
	for _, work := range works {
		switch addonwork.Applied(work, workv1.WorkApplied) {
		case metav1.ConditionFalse:
			condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed
			condition.Message = names.MessageManifestsApplyFailed
			return condition
		case metav1.ConditionUnknown:
			complete = false
		case metav1.ConditionTrue:
		}
	}
	if !complete {
		return nil
	}
	return condition
}

// available returns the condition that reports whether the agent of an add-on runs, by
// what the work agent reports about its workloads.
func available(addOn string, works []*workv1.ManifestWork, workloads []workv1.ResourceIdentifier) metav1.Condition {
	condition := metav1.Condition{Type: addonv1beta1.ManagedClusterAddOnConditionAvailable, Status: metav1.ConditionUnknown}
	if len(works) == 0 {
		condition.Reason, condition.Message = addonv1beta1.AddonAvailableReasonWorkNotFound, "Addon manifestWork is not found"
		return condition
	}
	var manifests []workv1.ManifestCondition
	for _, work := range works {
		reported := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkAvailable)
		if reported == nil {
			condition.Reason, condition.Message = addonv1beta1.AddonAvailableReasonWorkNotApply, "Addon manifestWork is not applied yet"
			return condition
		}
		if reported.Status == metav1.ConditionFalse {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonWorkNotApply, reported.Message
			return condition
		}
		manifests = append(manifests, work.Status.ResourceStatus.Manifests...)
	}
	probed := 0
	for _, id := range workloads {
		values := feedback(manifests, id)
		if len(values) == 0 {
			continue
		}
		probed++
		if problem := unready(id, values); problem != "" {
			condition.Status, condition.Reason = metav1.ConditionFalse, addonv1beta1.AddonAvailableReasonProbeUnavailable
			condition.Message = "Probe addon unavailable with err " + problem
			return condition
		}
	}
	if len(workloads) > 0 && probed == 0 {
		condition.Reason, condition.Message = addonv1beta1.AddonAvailableReasonNoProbeResult, "Probe results are not returned"
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.AddonAvailableReasonProbeAvailable
	condition.Message = fmt.Sprintf(names.MessageAddOnAvailable, addOn)
	return condition
}

// feedback returns what the work agent reports about an object.
func feedback(manifests []workv1.ManifestCondition, id workv1.ResourceIdentifier) []workv1.FeedbackValue {
	i := slices.IndexFunc(manifests, func(m workv1.ManifestCondition) bool {
		r := m.ResourceMeta
		return workv1.ResourceIdentifier{Group: r.Group, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name} == id
	})
	if i < 0 {
		return nil
	}
	return manifests[i].StatusFeedbacks.Values
}

// unready says why a workload is not ready, "" if it is.
func unready(id workv1.ResourceIdentifier, values []workv1.FeedbackValue) string {
	number := func(name string) int64 {
		for _, v := range values {
			if v.Name == name && v.Value.Integer != nil {
				return *v.Value.Integer
			}
		}
		return -1
	}
	ready, desired := number("ReadyReplicas"), number("Replicas")
	enough := desired == 0 || ready >= 1
	if id.Resource == "daemonsets" {
		ready, desired = number("NumberReady"), number("DesiredNumberScheduled")
		enough = ready == desired && ready >= 0
	}
	if enough {
		return ""
	}
	return fmt.Sprintf("desiredNumberReplicas is %d but readyReplica is %d for %s %s/%s", desired, ready, id.Resource, id.Namespace, id.Name)
}

// ended reports whether everything in the work that runs before the deletion of an
// add-on has succeeded.
func ended(work *workv1.ManifestWork) bool {
	if addonwork.Applied(work, workv1.WorkAvailable) != metav1.ConditionTrue || len(work.Spec.ManifestConfigs) == 0 {
		return false
	}
	return !slices.ContainsFunc(work.Spec.ManifestConfigs, func(c workv1.ManifestConfigOption) bool {
		name, want := "JobComplete", "True"
		if c.ResourceIdentifier.Resource == "pods" {
			name, want = "PodPhase", "Succeeded"
		}
		return !slices.ContainsFunc(feedback(work.Status.ResourceStatus.Manifests, c.ResourceIdentifier), func(v workv1.FeedbackValue) bool {
			return v.Name == name && v.Value.String != nil && *v.Value.String == want
		})
	})
}
