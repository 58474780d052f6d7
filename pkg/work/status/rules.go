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

// Rules evaluates condition rules in the process that calls it. CEL stops an expression
// that costs too much, but only between two of its steps, of which one can take any time
// and memory. It is safe for concurrent use.
type Rules struct{ expressions *expressions }

// NewRules returns Rules.
func NewRules() *Rules { return &Rules{newExpressions()} }

// Evaluate implements Evaluator.
func (r *Rules) Evaluate(ctx context.Context, obj *unstructured.Unstructured, rules []workv1.ConditionRule) []metav1.Condition {
	var conditions []metav1.Condition
	e := r.expressions.start(obj)
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

// TooExpensive returns the conditions of rules that were not evaluated because that takes
// too much, as text says.
func TooExpensive(rules []workv1.ConditionRule, text string) []metav1.Condition {
	return failed(rules, expressionError(text))
}

// Unevaluated returns the conditions of rules that were not evaluated through no fault of
// theirs.
func Unevaluated(rules []workv1.ConditionRule, err error) []metav1.Condition {
	return failed(rules, internalError(err))
}

func failed(rules []workv1.ConditionRule, err *ruleError) []metav1.Condition {
	var conditions []metav1.Condition
	for _, rule := range rules {
		if settable(rule.Condition) {
			conditions = append(conditions, bounded(metav1.Condition{Type: rule.Condition, Status: err.status, Reason: err.reason, Message: err.Error()}))
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
