package pages

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each calls visit with every object of type T, a page at a time. list is an empty list
// of the kind. An object can be visited twice: a list that takes too long is restarted.
func Each[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, visit func(T), options ...client.ListOption) error {
	pages := pager.New(func(ctx context.Context, part metav1.ListOptions) (runtime.Object, error) {
		page, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is not a list", list)
		}
		return page, reader.List(ctx, page, append(slices.Clone(options), client.Limit(part.Limit), client.Continue(part.Continue))...)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if object, ok := item.(T); ok {
			visit(object)
		}
		return nil
	})
}
