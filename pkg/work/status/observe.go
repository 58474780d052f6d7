package status

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/manifest"
)

// Observation is the object of a manifest, as it was read.
type Observation struct {
	// Meta says which manifest it is.
	Meta workv1.ManifestResourceMeta
	// Object is the live object. It is not changed.
	Object *unstructured.Unstructured
	// Err is why nothing could be read.
	Err error
	// Options are the options of the resource.
	Options manifest.Options
	// Generation is the generation of the work.
	Generation int64
}

// Observer turns what was read into what is reported. It is safe for concurrent use.
type Observer struct {
	limits Limits
	rules  Evaluator
}

// Evaluator evaluates condition rules.
type Evaluator interface {
	// Evaluate returns the conditions that the rules set for an object, in their order.
	// Errors are in the conditions, for users to see.
	// See docs/reference/wire-contract.md#work-condition-rules.
	Evaluate(ctx context.Context, obj *unstructured.Unstructured, rules []workv1.ConditionRule) []metav1.Condition
}

// NewObserver returns an observer whose feedback is limited, and whose rules are evaluated
// by rules.
func NewObserver(limits Limits, rules Evaluator) *Observer {
	return &Observer{limits: limits, rules: rules}
}

// Observe returns the condition Available of a manifest and, if its object could be read,
// the condition Ready, its feedback with the condition StatusFeedbackSynced and the
// conditions that condition rules set. A rule for Available or Ready replaces that
// condition, but for Ready of what has finished. The caller adds Applied, which an object does not show.
func (o *Observer) Observe(ctx context.Context, seen Observation) workv1.ManifestCondition {
	observed := workv1.ManifestCondition{ResourceMeta: seen.Meta}
	available := Available(seen.Meta, seen.Err)
	observed.Conditions = append(observed.Conditions, available)
	if seen.Object == nil || seen.Err != nil {
		return observed
	}
	values, err := Values(seen.Object, seen.Options.Feedback, o.limits)
	observed.StatusFeedbacks.Values = values
	observed.Conditions = append(observed.Conditions, feedbackSynced(seen.Options.Feedback, err))
	if ready, says := Ready(seen.Object, seen.Generation); says {
		observed.Conditions = append(observed.Conditions, ready)
	}
	for _, condition := range o.rules.Evaluate(ctx, seen.Object, seen.Options.Conditions) {
		if condition.Type == names.ConditionReady && Finished(seen.Object) {
			continue // By what is reported then, it does not run again when it goes.
		}
		condition.ObservedGeneration = seen.Generation
		setCondition(&observed.Conditions, condition)
	}
	return observed
}
