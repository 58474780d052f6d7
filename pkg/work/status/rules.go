package status

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// evaluateRules returns the conditions that the rules set for an object, in their order.
// Their errors are in the conditions, for users to see.
// See docs/reference/wire-contract.md#work-condition-rules.
func (o *Observer) evaluateRules(ctx context.Context, obj *unstructured.Unstructured, rules []workv1.ConditionRule) []metav1.Condition {
	var conditions []metav1.Condition
	e := o.expressions.start(obj)
	for _, rule := range rules {
		if !settable(rule.Condition) {
			continue
		}
		switch rule.Type {
		case workv1.WellKnownConditionsType:
			wellKnown, ok := wellKnownRule(obj.GroupVersionKind(), rule)
			if ok {
				conditions = append(conditions, evaluateRule(ctx, e, wellKnown))
			}
		case workv1.CelConditionExpressionsType:
			conditions = append(conditions, evaluateRule(ctx, e, rule))
		default:
			conditions = append(conditions, metav1.Condition{
				Type: rule.Condition, Status: metav1.ConditionUnknown, Reason: workv1.ConditionRuleInvalid,
				Message: fmt.Sprintf("unrecognized condition rule type %s", rule.Type),
			})
		}
	}
	return conditions
}

// settable reports whether a rule may set a condition: one that the agent decides would
// change back and forth, and because of a type that is no qualified name the API server
// would reject the whole status.
func settable(condition string) bool {
	reserved := []string{workv1.ManifestApplied, names.ConditionStatusFeedbackSynced, workv1.WorkDeleting}
	return !slices.Contains(reserved, condition) && len(validation.IsQualifiedName(condition)) == 0
}

// wellKnownRule returns the rule that a rule of type WellKnownConditions stands for. There
// is none for most kinds and conditions; such a rule sets nothing.
func wellKnownRule(kind schema.GroupVersionKind, rule workv1.ConditionRule) (workv1.ConditionRule, bool) {
	wellKnown := workv1.ConditionRule{Condition: workv1.ManifestComplete, Message: rule.Message}
	switch {
	case rule.Condition != workv1.ManifestComplete:
		return wellKnown, false
	case kind == schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		wellKnown.CelExpressions = []string{
			`hasConditions(object.status) && object.status.conditions.exists(c, c.type in ["Complete", "Failed"] && c.status == "True")`,
		}
		wellKnown.MessageExpression = `"Job is " + (result ? "finished" : "not finished")`
	case kind == schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		wellKnown.CelExpressions = []string{`object.status.phase in ["Succeeded", "Failed"]`}
		wellKnown.MessageExpression = `"Pod is in phase " + object.status.phase`
	default:
		return wellKnown, false
	}
	if rule.MessageExpression != "" {
		wellKnown.MessageExpression = rule.MessageExpression
	}
	return wellKnown, true
}

// evaluateRule returns the condition that a rule of expressions sets.
func evaluateRule(ctx context.Context, e *evaluation, rule workv1.ConditionRule) metav1.Condition {
	condition := metav1.Condition{Type: rule.Condition}
	holds, err := e.allHold(ctx, rule.CelExpressions)
	switch {
	case err != nil:
		condition.Status, condition.Reason = err.status, err.reason
		condition.Message = err.Error()
		return bounded(condition)
	case holds:
		condition.Status, condition.Message = metav1.ConditionTrue, "Manifest is "+rule.Condition
	default:
		condition.Status, condition.Message = metav1.ConditionFalse, "Manifest is not "+rule.Condition
	}
	condition.Reason = workv1.ConditionRuleEvaluated
	if rule.Message != "" {
		condition.Message = rule.Message
	}
	if rule.MessageExpression != "" {
		message, err := e.message(ctx, rule.MessageExpression, holds)
		switch {
		case err != nil:
			condition.Message = err.Error()
		case message != "":
			condition.Message = message
		}
	}
	return bounded(condition)
}
