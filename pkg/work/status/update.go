package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Update sets in the status of a work what was found out about its manifests, one entry
// per manifest in the order of the spec, and the conditions of the work that sum them
// up. Conditions that an entry lacks stay, and so does feedback if the entry does not
// report any; conditions of rules that the work no longer has go. Unless a condition
// changed, its transition time stays. Slices of the status are replaced, not changed.
// See docs/reference/wire-contract.md#work-conditions.
func Update(status *workv1.ManifestWorkStatus, generation int64, found []workv1.ManifestCondition, now metav1.Time) {
	before := NewIndex(status.ResourceStatus.Manifests)
	manifests := make([]workv1.ManifestCondition, 0, len(found))
	for _, entry := range found {
		old, _ := before.Find(entry.ResourceMeta)
		manifests = append(manifests, merge(old, entry, generation, now))
	}
	status.ResourceStatus.Manifests = manifests

	conditions := slices.Clone(status.Conditions)
	for _, condition := range aggregate(manifests, generation) {
		condition.LastTransitionTime = now
		apimeta.SetStatusCondition(&conditions, condition)
	}
	status.Conditions = withoutStaleRules(conditions, generation)
}

// merge returns the entry of a manifest, given the one before, which can be empty.
func merge(old, found workv1.ManifestCondition, generation int64, now metav1.Time) workv1.ManifestCondition {
	merged := workv1.ManifestCondition{ResourceMeta: found.ResourceMeta, StatusFeedbacks: old.StatusFeedbacks}
	conditions := append([]metav1.Condition{}, old.Conditions...)
	// What an object that could not be read had shown is kept: a Job that is complete
	// stays so when it is deleted.
	read := apimeta.FindStatusCondition(found.Conditions, names.ConditionStatusFeedbackSynced) != nil
	if read {
		merged.StatusFeedbacks = found.StatusFeedbacks
		if !equality.Semantic.DeepEqual(old.StatusFeedbacks, found.StatusFeedbacks) {
			// Its transition time is when the values changed last.
			apimeta.RemoveStatusCondition(&conditions, names.ConditionStatusFeedbackSynced)
		}
	}
	if outdatesReady(found) {
		conditions = slices.DeleteFunc(conditions, func(c metav1.Condition) bool { return c.Type == names.ConditionReady && !SetByRule(c) })
	}
	for _, condition := range found.Conditions {
		condition.LastTransitionTime = now
		apimeta.SetStatusCondition(&conditions, condition)
	}
	if read {
		conditions = withoutStaleRules(conditions, generation)
	}
	merged.Conditions = conditions
	return merged
}

// outdatesReady reports whether an object does not say any more that it is ready: it was
// read, or is gone.
func outdatesReady(found workv1.ManifestCondition) bool {
	seen := apimeta.FindStatusCondition(found.Conditions, names.ConditionStatusFeedbackSynced) != nil ||
		apimeta.IsStatusConditionFalse(found.Conditions, workv1.ManifestAvailable)
	return seen && apimeta.FindStatusCondition(found.Conditions, names.ConditionReady) == nil
}

// withoutStaleRules removes the conditions of rules of an earlier generation of the
// work.
func withoutStaleRules(conditions []metav1.Condition, generation int64) []metav1.Condition {
	return slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
		return SetByRule(c) && c.ObservedGeneration != generation
	})
}

// SetByRule reports whether a condition rule set a condition, by the prefix of its reason.
// See docs/reference/wire-contract.md#work-condition-rules.
func SetByRule(c metav1.Condition) bool {
	return strings.HasPrefix(c.Reason, names.ReasonConditionRulePrefix)
}

// setCondition adds or replaces a condition.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition) {
	if old := apimeta.FindStatusCondition(*conditions, c.Type); old != nil {
		*old = c
		return
	}
	*conditions = append(*conditions, c)
}
