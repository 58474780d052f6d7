package operand

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Owned selects the objects that an operator applied for one resource.
type Owned struct {
	// Client reads and deletes.
	Client client.Client
	// Label selects the objects.
	Label client.MatchingLabels
	// FieldManager applied them.
	FieldManager string
	// Kinds are empty lists of the kinds to look at; they hold no data of users.
	Kinds []client.ObjectList
}

// List returns the objects, one kind after the other.
func (o Owned) List(ctx context.Context) ([]client.Object, error) {
	var objs []client.Object
	for _, kind := range o.Kinds {
		list, ok := kind.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", kind)
		}
		if err := o.Client.List(ctx, list, o.Label); err != nil {
			return nil, fmt.Errorf("list applied objects: %w", err)
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok && apply.AppliedBy(obj, o.FieldManager) {
				objs = append(objs, obj)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list applied objects: %w", err)
		}
	}
	return objs, nil
}

// Prune deletes the objects that desired does not contain.
func (o Owned) Prune(ctx context.Context, desired apply.ChangeSet) error {
	objs, err := o.List(ctx)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if !obj.GetDeletionTimestamp().IsZero() || o.contains(desired, obj) {
			continue
		}
		err := o.Client.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete an object that is no longer desired: %w", err)
		}
	}
	return nil
}

func (o Owned) contains(desired apply.ChangeSet, obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, o.Client.Scheme())
	if err != nil {
		return true // A kind that no manifest has.
	}
	return slices.ContainsFunc(desired, func(change apply.Change) bool {
		ref := change.Object
		return ref.Kind.GroupKind() == gvk.GroupKind() && ref.Namespace == obj.GetNamespace() && ref.Name == obj.GetName()
	})
}

// ReleaseCRDs removes the version annotation and the label from rendered CRDs, which
// stay because their objects may be in use, so that another installation can take
// them over. CRDs for which retain returns true are left alone.
func (o Owned) ReleaseCRDs(ctx context.Context, rendered []*unstructured.Unstructured, label string, retain func(owner string) bool) error {
	for _, obj := range rendered {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := o.Client.Get(ctx, client.ObjectKeyFromObject(obj), &crd); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if retain(crd.Labels[label]) {
			continue
		}
		patch := client.MergeFromWithOptions(crd.DeepCopy(), client.MergeFromWithOptimisticLock{})
		delete(crd.Annotations, names.AnnotationVersion)
		delete(crd.Labels, label)
		if err := o.Client.Patch(ctx, &crd, patch, client.FieldOwner(o.FieldManager)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}
