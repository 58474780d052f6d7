package install

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
)

// operatorPod is the operator's own pods. They are placed and sized like the
// components.
func operatorPod(image string, replicas int32, resources *operatorv1.ResourceRequirement, placement operatorv1.NodePlacement) manifests.Pod {
	return manifests.Pod{
		Image: image, Replicas: replicas, Resources: requirements(resources),
		NodeSelector: placement.NodeSelector, Tolerations: placement.Tolerations,
	}
}

// requirements turns OCM's resource classes into requests.
func requirements(r *operatorv1.ResourceRequirement) corev1.ResourceRequirements {
	if r != nil {
		switch r.Type {
		case operatorv1.ResourceQosClassBestEffort:
			return corev1.ResourceRequirements{}
		case operatorv1.ResourceQosClassResourceRequirement:
			if r.ResourceRequirements != nil {
				return *r.ResourceRequirements.DeepCopy()
			}
		default:
		}
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}
}

func asObjects(rendered []*unstructured.Unstructured) []client.Object {
	objs := make([]client.Object, len(rendered))
	for i, obj := range rendered {
		objs[i] = obj
	}
	return objs
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
