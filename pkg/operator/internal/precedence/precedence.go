package precedence

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Sort puts resources that have the operator's finalizer first, because they
// were applied before, then the older ones.
func Sort[T client.Object](resources []T, finalizer string) {
	slices.SortFunc(resources, func(a, b T) int {
		return cmp.Or(
			-compareBool(controllerutil.ContainsFinalizer(a, finalizer), controllerutil.ContainsFinalizer(b, finalizer)),
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
