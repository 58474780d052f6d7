package operand

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Resource is the kind that an operator reconciles.
type Resource struct {
	// Client reads the cache.
	Client client.Reader
	// List is an empty list of the kind.
	List client.ObjectList
	// Label is the label of applied objects whose value is the resource's name.
	Label string
	// Namespace is the operator's namespace, with the original pull secret.
	Namespace string
}

// ByLabel requests the resource that an object was applied for.
func (r Resource) ByLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[r.Label]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// BySecret requests the resource of a copied pull secret, and all resources for
// the original.
func (r Resource) BySecret(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetNamespace() != r.Namespace {
		return r.ByLabel(ctx, obj)
	}
	return r.All(ctx, obj)
}

// All requests every resource.
func (r Resource) All(ctx context.Context, _ client.Object) []reconcile.Request {
	list, ok := r.List.DeepCopyObject().(client.ObjectList)
	if !ok || r.Client.List(ctx, list) != nil {
		return nil // The cache is stopping; the next start lists everything.
	}
	var requests []reconcile.Request
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: obj.GetName()}})
		}
		return nil
	})
	return requests
}
