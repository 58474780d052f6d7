package takeover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// Mover performs steps.
type Mover struct {
	Client client.WithWatch
	// Waiter waits for what is deleted.
	Waiter *apply.Waiter
	// Say reports what was done.
	Say func(format string, args ...any)
	// FieldManager owns what is patched.
	FieldManager string
}

// Do performs a step of a plan of s. It can be repeated.
func (m *Mover) Do(ctx context.Context, s *Survey, step Step) error {
	switch step.action {
	case stop:
		return m.deleteAll(ctx, step.objects, metav1.DeletePropagationForeground)
	case handOver:
		return m.deleteAll(ctx, step.objects, metav1.DeletePropagationOrphan)
	case remove:
		return m.deleteAll(ctx, step.objects, metav1.DeletePropagationBackground)
	case release:
		return m.releaseAll(ctx, step.objects)
	case sweep:
		return m.sweep(ctx, s)
	}
	return nil
}

// deleteAll deletes objects and waits until they are gone; in the foreground, their
// pods are gone by then.
func (m *Mover) deleteAll(ctx context.Context, objs []client.Object, propagation metav1.DeletionPropagation) error {
	targets := make([]apply.Target, len(objs))
	for i, obj := range objs {
		if err := m.delete(ctx, obj, propagation); err != nil {
			return err
		}
		targets[i] = apply.Target{Object: obj, Check: apply.Gone()}
	}
	return m.Waiter.Wait(ctx, targets...)
}

func (m *Mover) releaseAll(ctx context.Context, crds []client.Object) error {
	for _, crd := range crds {
		if err := m.release(ctx, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object in the state that it has now, unless it is ours by now.
func (m *Mover) delete(ctx context.Context, obj client.Object, propagation metav1.DeletionPropagation) error {
	live, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	if err := m.Client.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if d, ok := live.(*appsv1.Deployment); ok && origin.Ours(&d.Spec.Template.Spec) {
		return nil
	}
	err := m.Client.Delete(ctx, live, client.PropagationPolicy(propagation), client.Preconditions{UID: new(live.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", nameOf(obj), err)
	}
	m.Say("%s deleted", nameOf(obj))
	return nil
}

// release takes the version off a CRD, as OCM's operator does with CRDs that it leaves
// to others.
func (m *Mover) release(ctx context.Context, crdName string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return m.releaseOnce(ctx, crdName) })
}

func (m *Mover) releaseOnce(ctx context.Context, crdName string) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(crdKind())
	if err := m.Client.Get(ctx, client.ObjectKey{Name: crdName}, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := live.DeepCopy()
	delete(live.Annotations, names.AnnotationVersion)
	err := m.Client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(m.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release CRD %s: %w", crdName, err)
	}
	return nil
}

// sweep deletes what is left now that ours has applied all of its own.
func (m *Mover) sweep(ctx context.Context, s *Survey) error {
	left, err := s.unused(ctx, m.Client)
	if err != nil {
		return err
	}
	for _, obj := range left {
		err := m.Client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: new(obj.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", nameOf(obj), err)
		}
	}
	if len(left) > 0 {
		m.Say("%d objects deleted", len(left))
	}
	return nil
}
