package pass

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/internal/report"
)

// conditionApplied is the name that both resources give to the condition.
const conditionApplied = "Applied"

// Pass is one pass over one resource, whose manifests take values of type V.
type Pass[V any] struct {
	// Applier applies what phases render.
	Applier *apply.Applier
	// Values are what the manifests are rendered from.
	Values V
	// Status is what the resource's status will say.
	Status report.Status
	// Changes are what was applied so far.
	Changes apply.ChangeSet
}

// Phase is one step of a pass.
type Phase[V any] struct {
	// Name says in the condition Applied what failed.
	Name string
	// Reason is the condition's reason then.
	Reason string
	// Run does the step.
	Run func(context.Context, *Pass[V]) error
}

// Render makes the Run of a phase that applies what a manifest function returns.
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
// the condition Applied, to done when all went well, and the lists of what was
// applied. A pass that did not come to its end does not know them all and keeps
// those of live, the status as it was read.
func (p *Pass[V]) Run(ctx context.Context, live report.Status, done metav1.Condition, phases ...Phase[V]) error {
	for _, phase := range phases {
		if err := phase.Run(ctx, p); err != nil {
			p.Refuse(live, metav1.Condition{Reason: phase.Reason, Message: fmt.Sprintf("%s: %v", phase.Name, err)})
			return fmt.Errorf("%s: %w", phase.Name, err)
		}
	}
	done.Type, done.Status = conditionApplied, metav1.ConditionTrue
	p.Status.Set(done)
	p.Status.RelatedResources, p.Status.Generations = report.Related(p.Applier.Client.RESTMapper(), p.Changes)
	return nil
}

// Refuse sets the condition Applied to False with the reason and message of
// because, and keeps the lists of what was applied earlier.
func (p *Pass[V]) Refuse(live report.Status, because metav1.Condition) {
	because.Type, because.Status = conditionApplied, metav1.ConditionFalse
	p.Status.Set(because)
	p.Status.RelatedResources, p.Status.Generations = live.RelatedResources, live.Generations
}

// RefuseSetting sets the condition Applied to False after a pass that applied
// everything but a setting. What was applied stays listed.
func (p *Pass[V]) RefuseSetting(because metav1.Condition) {
	because.Type, because.Status = conditionApplied, metav1.ConditionFalse
	p.Status.Set(because)
}

// EnsureFinalizer makes sure, before anything is made for obj, that it will be
// removed.
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

// RemoveFinalizer lets obj go.
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
