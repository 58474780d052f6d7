package operand

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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
	// Applier applies what phases render.
	Applier *apply.Applier
	// Values are what the manifests are rendered from.
	Values V
	// Status is the status to write.
	Status Status
	// Changes lists what was applied so far.
	Changes apply.ChangeSet
}

// Phase is one step of a reconcile.
type Phase[V any] struct {
	// Name and Reason are those of the condition Applied when the phase fails.
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
		changes, err := p.Applier.Apply(ctx, apply.Objects(rendered)...)
		p.Changes = append(p.Changes, changes...)
		return err
	}
}

// Run runs phases up to the first that fails, whose error it returns. It sets
// the condition Applied, to done when all succeed, and the lists of applied
// objects. An incomplete pass does not know them all and retains the lists of
// live, the status as it was read.
func (p *Pass[V]) Run(ctx context.Context, live Status, done metav1.Condition, phases ...Phase[V]) error {
	for _, phase := range phases {
		if err := phase.Run(ctx, p); err != nil {
			p.Reject(live, metav1.Condition{Reason: phase.Reason, Message: fmt.Sprintf("%s: %v", phase.Name, err)})
			return fmt.Errorf("%s: %w", phase.Name, err)
		}
	}
	done.Type, done.Status = conditionApplied, metav1.ConditionTrue
	p.Status.Set(done)
	p.Status.RelatedResources, p.Status.Generations = related(p.Applier.Client.RESTMapper(), p.Changes)
	return nil
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

// Reject sets the condition Applied to False with the reason and message of
// because, and retains the lists of what was applied earlier.
func (p *Pass[V]) Reject(live Status, because metav1.Condition) {
	p.RejectSetting(because)
	p.Status.RelatedResources, p.Status.Generations = live.RelatedResources, live.Generations
}

// RejectSetting sets the condition Applied to False after a pass that applied
// everything but a setting. What was applied stays listed.
func (p *Pass[V]) RejectSetting(because metav1.Condition) {
	because.Type, because.Status = conditionApplied, metav1.ConditionFalse
	p.Status.Set(because)
}

// EnsureFinalizer adds the finalizer to obj; call it before anything is applied
// for obj.
func EnsureFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer, fieldManager string) error {
	patch, err := finalizerPatch(obj)
	if err != nil || !controllerutil.AddFinalizer(obj, finalizer) {
		return err
	}
	if err := c.Patch(ctx, obj, patch, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("add the finalizer to %s: %w", obj.GetName(), err)
	}
	return nil
}

// RemoveFinalizer removes the finalizer, with which the deletion of obj completes.
func RemoveFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer, fieldManager string) error {
	patch, err := finalizerPatch(obj)
	if err != nil || !controllerutil.RemoveFinalizer(obj, finalizer) {
		return err
	}
	if err := c.Patch(ctx, obj, patch, client.FieldOwner(fieldManager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from %s: %w", obj.GetName(), err)
	}
	return nil
}

// finalizerPatch compares with obj as it is now. The list of finalizers is
// replaced as a whole, so it must not have changed in the meantime.
func finalizerPatch(obj client.Object) (client.Patch, error) {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no API object", obj)
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), nil
}
