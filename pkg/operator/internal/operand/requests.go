package operand

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
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
	return watch.Named("", obj.GetLabels()[r.Label])
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
	if !ok {
		return nil // Every list is one.
	}
	return watch.Listed(ctx, r.Client, list)
}
