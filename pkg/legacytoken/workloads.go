package legacytoken

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podspec"
)

// workload is a kind of objects that create Pods. Pods change: one that is created
// tomorrow needs the Secret as well.
type workload struct {
	kind string
	list client.ObjectList
}

// workloads are all kinds that use Secrets.
func workloads() []workload {
	return []workload{
		{"Pod", &corev1.PodList{}},
		{"Deployment", &appsv1.DeploymentList{}},
		{"StatefulSet", &appsv1.StatefulSetList{}},
		{"DaemonSet", &appsv1.DaemonSetList{}},
		{"ReplicaSet", &appsv1.ReplicaSetList{}},
		{"ReplicationController", &corev1.ReplicationControllerList{}},
		{"CronJob", &batchv1.CronJobList{}},
		{"Job", &batchv1.JobList{}},
	}
}

// specOf returns how the Pods of an object are specified, nil if it starts none. A
// workload that another one controls is left out: that one is listed itself.
func specOf(object client.Object) *corev1.PodSpec {
	switch o := object.(type) {
	case *corev1.Pod:
		if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			return nil
		}
		return &o.Spec
	case *batchv1.Job:
		if finished(o) {
			return nil
		}
	}
	if metav1.GetControllerOf(object) != nil {
		return nil
	}
	return podspec.Of(object)
}

func finished(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// references are the names of the Secrets that Pods of a specification need, other
// than for pulling images.
func references(spec *corev1.PodSpec) sets.Set[string] {
	found := sets.New[string]()
	for i := range spec.Volumes {
		volume(found, &spec.Volumes[i].VolumeSource)
	}
	for i := range spec.InitContainers {
		environment(found, spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		environment(found, spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		environment(found, spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	return found
}

func environment(found sets.Set[string], env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			found.Insert(e.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, e := range from {
		if e.SecretRef != nil {
			found.Insert(e.SecretRef.Name)
		}
	}
}

// volume adds the Secrets of a volume. Drivers that are given one get its data.
func volume(found sets.Set[string], v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		found.Insert(v.Secret.SecretName)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				found.Insert(source.Secret.Name)
			}
		}
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		found.Insert(v.CSI.NodePublishSecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		found.Insert(v.FlexVolume.SecretRef.Name)
	}
}
