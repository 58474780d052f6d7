package operand

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// conditionApplied is the name that both resources give to the condition.
const conditionApplied = "Applied"

// ReasonModeNotSupported is the reason of Applied for an install mode that this
// version does not have.
const ReasonModeNotSupported = "InstallModeNotSupported"

// Pass is one reconcile of one resource, whose manifests take values of type V.
type Pass[V any] struct {
	// Values are the input of the manifests.
	Values V
	// Status is the status to write.
	Status Status
	// Changes lists the changes applied so far.
	Changes apply.ChangeSet

	operator *Operator
	name     string
	// live is the status as it was read.
	live Status
}

// NewPass returns a pass over a resource, whose status is live.
func NewPass[V any](operator *Operator, resource client.Object, live Status) Pass[V] {
	return Pass[V]{
		operator: operator, name: resource.GetName(), live: live,
		Status: Status{ObservedGeneration: resource.GetGeneration()},
	}
}

// Phase is one step of a reconcile.
type Phase[V any] struct {
	// Name and Reason are used in the condition Applied when the phase fails.
	Name, Reason string
	// Run runs the phase.
	Run func(context.Context, *Pass[V]) error
}

// Render returns a Run that applies the objects a manifest function renders.
func Render[V any](render func(V) ([]*unstructured.Unstructured, error)) func(context.Context, *Pass[V]) error {
	return func(ctx context.Context, p *Pass[V]) error {
		rendered, err := render(p.Values)
		if err != nil {
			return err
		}
		changes, err := p.operator.Applier.Apply(ctx, apply.Objects(rendered)...)
		p.Changes = append(p.Changes, changes...)
		return err
	}
}

// Apply runs the phases, sets the condition Applied, to done or to what rejects a
// setting, has evaluate set the conditions of what runs, and writes the status.
func (p *Pass[V]) Apply(ctx context.Context, done metav1.Condition, rejected *metav1.Condition, evaluate func(context.Context), phases ...Phase[V]) (ctrl.Result, error) {
	err := p.run(ctx, done, phases)
	if err == nil && rejected != nil {
		p.setApplied(metav1.ConditionFalse, *rejected)
	}
	evaluate(ctx)
	if terminating := new(apply.TerminatingError); errors.As(err, &terminating) {
		// It is created again once it is gone.
		return ctrl.Result{RequeueAfter: p.operator.Retry}, p.Report(ctx)
	}
	return ctrl.Result{}, errors.Join(err, p.Report(ctx))
}

// run runs phases up to the first that fails, whose error it returns. It sets the
// condition Applied and the lists of applied objects, which an incomplete pass does not
// know and leaves unchanged.
func (p *Pass[V]) run(ctx context.Context, done metav1.Condition, phases []Phase[V]) error {
	for _, phase := range phases {
		if err := phase.Run(ctx, p); err != nil {
			p.Reject(metav1.Condition{Reason: phase.Reason, Message: fmt.Sprintf("%s: %v", phase.Name, err)})
			return fmt.Errorf("%s: %w", phase.Name, err)
		}
	}
	p.setApplied(metav1.ConditionTrue, done)
	p.Status.RelatedResources, p.Status.Generations = related(p.operator.Client.RESTMapper(), p.Changes)
	return nil
}

// Reject sets the condition Applied to False with the reason and message of
// because, and retains the lists of what was applied earlier.
func (p *Pass[V]) Reject(because metav1.Condition) {
	p.setApplied(metav1.ConditionFalse, because)
	p.Status.RelatedResources, p.Status.Generations = p.live.RelatedResources, p.live.Generations
}

func (p *Pass[V]) setApplied(status metav1.ConditionStatus, because metav1.Condition) {
	because.Type, because.Status = conditionApplied, status
	p.Status.Set(because)
}

// Report writes the status.
func (p *Pass[V]) Report(ctx context.Context) error {
	return p.operator.writeStatus(ctx, p.name, p.live, p.Status)
}

// Rejection returns a condition Applied for a resource, or a setting of it, that
// is not applied.
func Rejection(reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// UnsupportedMode returns the rejection of an install mode that this version does
// not have, or nil. Nothing is applied then, because the components would run in
// the wrong place; those that run continue to run.
func UnsupportedMode(mode operatorv1.InstallMode) *metav1.Condition {
	if mode == "" || mode == operatorv1.InstallModeDefault {
		return nil
	}
	return Rejection(ReasonModeNotSupported, "The install mode %s is not supported by this version: set spec.deployOption.mode to Default", mode)
}
