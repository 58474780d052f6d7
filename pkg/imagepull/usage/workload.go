package usage

import (
	"cmp"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload is a kind of object with pods.
type workload struct {
	object client.Object
	list   client.ObjectList
}

// workloads are pods and what makes pods. A workload that is none of them is seen
// by its pods, when the first of them is already there.
func workloads() []workload {
	return []workload{
		{&corev1.Pod{}, &corev1.PodList{}},
		{&appsv1.Deployment{}, &appsv1.DeploymentList{}},
		{&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}},
		{&appsv1.DaemonSet{}, &appsv1.DaemonSetList{}},
		{&batchv1.Job{}, &batchv1.JobList{}},
		{&batchv1.CronJob{}, &batchv1.CronJobList{}},
	}
}

// podSpec is the part of a workload that says how its pods run.
func podSpec(object client.Object) *corev1.PodSpec {
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	default:
		return &corev1.PodSpec{}
	}
}

// account is the name of the ServiceAccount that the pods of a workload run as.
// Admission fills it in for pods, but not for what makes them.
func account(object client.Object) string {
	return cmp.Or(podSpec(object).ServiceAccountName, "default")
}

// bare is a workload without everything that is not needed here.
func bare(full any) (any, error) {
	object, ok := full.(client.Object)
	if !ok {
		return full, nil
	}
	kept, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(object).Elem()))
	if !ok {
		return full, nil
	}
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	podSpec(kept).ServiceAccountName = account(object)
	return kept, nil
}
