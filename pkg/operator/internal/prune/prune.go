package prune

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
)

// Owned is what an operator made for one resource.
type Owned struct {
	// Client reads and deletes.
	Client client.Client
	// Label, a key with a value, marks the objects.
	Label client.MatchingLabels
	// FieldManager is the one that applied them.
	FieldManager string
	// Kinds are the lists of the kinds that are looked at.
	Kinds []client.ObjectList
}

// List returns the objects, kind after kind.
func (o Owned) List(ctx context.Context) ([]client.Object, error) {
	var objs []client.Object
	for _, kind := range o.Kinds {
		list, ok := kind.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", kind)
		}
		if err := o.Client.List(ctx, list, o.Label); err != nil {
			return nil, fmt.Errorf("list what was applied before: %w", err)
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok && apply.AppliedBy(obj, o.FieldManager) {
				objs = append(objs, obj)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list what was applied before: %w", err)
		}
	}
	return objs, nil
}

// Prune deletes the objects that wanted does not contain.
func (o Owned) Prune(ctx context.Context, wanted apply.ChangeSet) error {
	objs, err := o.List(ctx)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if !obj.GetDeletionTimestamp().IsZero() || o.contains(wanted, obj) {
			continue
		}
		err := o.Client.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete what is no longer wanted: %w", err)
		}
	}
	return nil
}

func (o Owned) contains(wanted apply.ChangeSet, obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, o.Client.Scheme())
	if err != nil {
		return true // Not a kind of ours, so not ours to delete.
	}
	return slices.ContainsFunc(wanted, func(change apply.Change) bool {
		ref := change.Object
		return ref.Kind.GroupKind() == gvk.GroupKind() && ref.Namespace == obj.GetNamespace() && ref.Name == obj.GetName()
	})
}
