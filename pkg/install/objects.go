package install

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
)

// operatorPod is the operator's own pods. They are placed and sized like the
// components.
func operatorPod(image string, replicas int32, resources *operatorv1.ResourceRequirement, placement operatorv1.NodePlacement) manifests.Pod {
	return manifests.Pod{
		Image: image, Replicas: replicas, Resources: manifests.Resources(resources),
		NodeSelector: placement.NodeSelector, Tolerations: placement.Tolerations,
	}
}

// without drops the objects of a kind.
func without(objs []client.Object, kind string) []client.Object {
	return slices.DeleteFunc(objs, func(obj client.Object) bool { return obj.GetObjectKind().GroupVersionKind().Kind == kind })
}

// annotate adds annotations to the objects of a kind.
func annotate(objs []client.Object, kind string, annotations map[string]string) {
	for _, obj := range objs {
		if obj.GetObjectKind().GroupVersionKind().Kind == kind && len(annotations) > 0 {
			obj.SetAnnotations(mergeMap(obj.GetAnnotations(), annotations))
		}
	}
}

func firstSet(values ...[]byte) []byte {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}
