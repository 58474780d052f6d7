package manifests

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// Resources returns the requests and limits that a requirement stands for: small
// requests by default, none for BestEffort, the given ones for
// ResourceRequirement. See docs/reference/wire-contract.md#resource-requirement.
func Resources(requirement *operatorv1.ResourceRequirement) corev1.ResourceRequirements {
	if requirement != nil {
		switch requirement.Type {
		case operatorv1.ResourceQosClassBestEffort:
			return corev1.ResourceRequirements{}
		case operatorv1.ResourceQosClassResourceRequirement:
			if requirement.ResourceRequirements != nil {
				return *requirement.ResourceRequirements
			}
		case operatorv1.ResourceQosClassDefault:
		}
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("2m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}
}
