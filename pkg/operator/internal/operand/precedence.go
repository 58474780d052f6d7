package operand

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// SortByPrecedence sorts resources by precedence where they would apply the same
// objects: those with the operator's finalizer first, because they were applied
// before, then the older ones. The order must be the same in every reconcile, or two
// resources would overwrite each other's labels forever.
func SortByPrecedence[T client.Object](resources []T, finalizer string) {
	rank := func(obj T) int {
		if controllerutil.ContainsFinalizer(obj, finalizer) {
			return 0
		}
		return 1
	}
	slices.SortFunc(resources, func(a, b T) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}
