package status

import (
	"fmt"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// tally counts the conditions of one type among the manifests of a work.
type tally struct {
	yes, no, unknown int
	message          string
}

func (t *tally) add(c metav1.Condition) {
	switch c.Status {
	case metav1.ConditionTrue:
		t.yes++
	case metav1.ConditionFalse:
		t.no++
	default:
		t.unknown++
	}
	if c.Message != "" {
		t.message = c.Message
	}
}

// aggregate returns the conditions of a work that follow from those of its manifests:
// Applied, Available, Ready, and one for each type that a condition rule set.
func aggregate(manifests []workv1.ManifestCondition, generation int64) []metav1.Condition {
	tallies := map[string]tally{workv1.WorkAvailable: {}}
	for i := range manifests {
		for _, c := range manifests[i].Conditions {
			if c.Type == workv1.ManifestAvailable || SetByRule(c) {
				t := tallies[c.Type]
				t.add(c)
				tallies[c.Type] = t
			}
		}
	}
	conditions := appliedWork(manifests)
	for _, kind := range slices.Sorted(maps.Keys(tallies)) {
		if kind == workv1.WorkAvailable {
			conditions = append(conditions, availableWork(tallies[kind], len(manifests)))
			continue
		}
		conditions = append(conditions, aggregateRules(kind, tallies[kind]))
	}
	if _, ruled := tallies[names.ConditionReady]; !ruled {
		conditions = append(conditions, readyWork(manifests))
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// appliedWork returns the condition Applied of a work, nothing while no manifest has
// that condition.
func appliedWork(manifests []workv1.ManifestCondition) []metav1.Condition {
	failed := metav1.Condition{
		Type: workv1.WorkApplied, Status: metav1.ConditionFalse,
		Reason: names.ReasonWorkApplyFailed, Message: names.MessageWorkApplyFailed,
	}
	if len(manifests) == 0 {
		failed.Message += ": manifests should not be empty"
		return []metav1.Condition{failed}
	}
	known := false
	for i := range manifests {
		condition := apimeta.FindStatusCondition(manifests[i].Conditions, workv1.ManifestApplied)
		if condition != nil && condition.Status == metav1.ConditionFalse {
			return []metav1.Condition{failed}
		}
		known = known || condition != nil
	}
	if !known {
		return nil
	}
	return []metav1.Condition{{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue,
		Reason: names.ReasonWorkApplied, Message: names.MessageWorkApplied,
	}}
}

func availableWork(t tally, total int) metav1.Condition {
	condition := metav1.Condition{Type: workv1.WorkAvailable}
	switch {
	case t.no > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, names.ReasonResourcesNotAvailable
		condition.Message = fmt.Sprintf("%d of %d resources are not available", t.no, total)
	case t.unknown > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, names.ReasonResourcesStatusUnknown
		condition.Message = fmt.Sprintf("%d of %d resources have unknown status", t.unknown, total)
	case t.yes == 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, names.ReasonResourcesStatusUnknown
		condition.Message = names.MessageNoResourceAvailable
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, names.ReasonResourcesAvailable
		condition.Message = names.MessageResourcesAvailable
	}
	return condition
}

// aggregateRules returns the condition of a work for a type that rules set: Progressing if
// any manifest is, every other if all manifests that have the condition are.
func aggregateRules(kind string, t tally) metav1.Condition {
	condition := metav1.Condition{Type: kind, Reason: names.ReasonConditionRulesAggregated, Status: metav1.ConditionUnknown}
	anyIsEnough := kind == workv1.WorkProgressing
	switch {
	case t.yes > 0 && (anyIsEnough || t.no+t.unknown == 0):
		condition.Status = metav1.ConditionTrue
	case t.no > 0 && (!anyIsEnough || t.unknown == 0):
		condition.Status = metav1.ConditionFalse
	}
	total := t.yes + t.no + t.unknown
	condition.Message = fmt.Sprintf("Aggregated from %d manifest conditions", total)
	if total == 1 && t.message != "" {
		condition.Message = t.message
	}
	return condition
}
