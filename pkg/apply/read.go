package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader reads objects from the API server.
func (a *Applier) reader() client.Reader {
	if a.Uncached != nil {
		return a.Uncached
	}
	return a.Client
}

// live reads the object as it is, from the cache where that holds it.
func (a *Applier) live(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := a.read(ctx, a.Client, desired)
	if apierrors.IsNotFound(err) && a.Uncached != nil {
		return a.read(ctx, a.Uncached, desired)
	}
	return live, err
}

// read reads kinds of the scheme as their Go types, so that a manager's cache
// serves the read from the informer that the controllers have anyway.
func (a *Applier) read(ctx context.Context, reader client.Reader, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk, key := desired.GroupVersionKind(), client.ObjectKeyFromObject(desired)
	if !a.Client.Scheme().Recognizes(gvk) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(gvk)
		return live, reader.Get(ctx, key, live)
	}
	typed, err := a.typed(gvk)
	if err != nil {
		return nil, err
	}
	if err := reader.Get(ctx, key, typed); err != nil {
		return nil, err
	}
	return fromTyped(typed, gvk)
}

// asRead returns what the API server returned in the form that read has: a Go type of
// the scheme may lack fields of a newer API server.
func (a *Applier) asRead(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := obj.GroupVersionKind()
	if !a.Client.Scheme().Recognizes(gvk) {
		return obj, nil
	}
	typed, err := a.typed(gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	return fromTyped(typed, gvk)
}

func fromTyped(typed client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func (a *Applier) typed(gvk schema.GroupVersionKind) (client.Object, error) {
	made, err := a.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", gvk, err)
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no API object", gvk)
	}
	return obj, nil
}
