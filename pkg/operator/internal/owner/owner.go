package owner

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
	// Label holds the name of a resource on what was made for it.
	Label string
	// Namespace is the operator's, where the original of the pull secret is.
	Namespace string
}

// ByLabel finds the resource that an object was made for.
func (r Resource) ByLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[r.Label]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// BySecret finds the resource of a copied pull secret, and every one for the
// original.
func (r Resource) BySecret(ctx context.Context, obj client.Object) []reconcile.Request {
	if obj.GetNamespace() != r.Namespace {
		return r.ByLabel(ctx, obj)
	}
	return r.All(ctx, obj)
}

// All finds every resource.
func (r Resource) All(ctx context.Context, _ client.Object) []reconcile.Request {
	list, ok := r.List.DeepCopyObject().(client.ObjectList)
	if !ok || r.Client.List(ctx, list) != nil {
		return nil // The cache is stopping; the next start looks at everything.
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
