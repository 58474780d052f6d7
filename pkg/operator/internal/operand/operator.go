package operand

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Operator is the common configuration of both operators.
type Operator struct {
	// Kind is the kind that the operator reconciles, and Finalizer its finalizer there.
	Kind      schema.GroupVersionKind
	Finalizer string
	// FieldManager owns what the operator writes.
	FieldManager string
	// Retry is the delay before a deletion is checked again that is not watched.
	Retry time.Duration
	// Replicas counts the replicas of components.
	Replicas Replicas
	// Clock sets transition times of conditions.
	Clock clock.PassiveClock

	// Client reads from the cache, and writes; Uncached reads from the API server.
	Client   client.Client
	Uncached client.Reader
	// Applier applies what phases render.
	Applier *apply.Applier
}

// CacheOptions limit the cache of an operator to the objects of kinds that have its
// label, and to the pull secret and its copies, which have one name: the operator may
// read no other.
func CacheOptions(label string, kinds []client.Object) (cache.Options, error) {
	made, err := labels.Parse(label)
	if err != nil {
		return cache.Options{}, err
	}
	byObject := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Field: fields.OneTermEqualSelector("metadata.name", names.ImagePullSecret)},
	}
	for _, kind := range kinds {
		byObject[kind] = cache.ByObject{Label: made}
	}
	return cache.Options{ByObject: byObject}, nil
}

// With returns the operator with the clients of mgr.
func (o Operator) With(mgr ctrl.Manager) Operator {
	o.Client, o.Uncached, o.Replicas.Nodes = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetAPIReader()
	o.Applier = &apply.Applier{Client: o.Client, Uncached: o.Uncached, FieldManager: o.FieldManager}
	return o
}

// EnsureFinalizer adds the finalizer to obj; call it before anything is applied
// for obj.
func (o *Operator) EnsureFinalizer(ctx context.Context, obj client.Object) error {
	patch, err := finalizerPatch(obj)
	if err != nil || !controllerutil.AddFinalizer(obj, o.Finalizer) {
		return err
	}
	if err := o.Client.Patch(ctx, obj, patch, client.FieldOwner(o.FieldManager)); err != nil {
		return fmt.Errorf("add the finalizer to %s: %w", obj.GetName(), err)
	}
	return nil
}

// RemoveFinalizer removes the finalizer, with which the deletion of obj completes.
func (o *Operator) RemoveFinalizer(ctx context.Context, obj client.Object) error {
	patch, err := finalizerPatch(obj)
	if err != nil || !controllerutil.RemoveFinalizer(obj, o.Finalizer) {
		return err
	}
	if err := o.Client.Patch(ctx, obj, patch, client.FieldOwner(o.FieldManager)); client.IgnoreNotFound(err) != nil {
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
