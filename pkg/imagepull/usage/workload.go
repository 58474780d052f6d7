package usage

import (
	"cmp"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podspec"
)

// workload is a kind of object with pods.
type workload struct {
	object client.Object
	list   client.ObjectList
}

// workloads are pods and the kinds that create pods. Any other workload is found
// through its pods, once the first of them exists.
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

// account is the name of the ServiceAccount that the pods of a workload run as.
// Admission fills it in for pods, but not for what makes them.
func account(object client.Object) string {
	return cmp.Or(podspec.Of(object).ServiceAccountName, "default")
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
	podspec.Of(kept).ServiceAccountName = account(object)
	return kept, nil
}
