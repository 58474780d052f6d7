package legacytoken

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload is a kind of objects that Pods run by. Pods come and go: one that
// comes tomorrow needs the Secret as well.
type workload struct {
	kind, plural string
	list         client.ObjectList
	// spec returns how the object's Pods are specified, nil if it starts none.
	spec func(runtime.Object) *corev1.PodSpec
}

// workloads are all kinds that use Secrets.
func workloads() []workload {
	return []workload{
		{"Pod", "Pods", &corev1.PodList{}, func(o runtime.Object) *corev1.PodSpec {
			pod, ok := o.(*corev1.Pod)
			if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				return nil
			}
			return &pod.Spec
		}},
		{"Deployment", "Deployments", &appsv1.DeploymentList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(d *appsv1.Deployment) *corev1.PodSpec { return &d.Spec.Template.Spec })
		}},
		{"StatefulSet", "StatefulSets", &appsv1.StatefulSetList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(s *appsv1.StatefulSet) *corev1.PodSpec { return &s.Spec.Template.Spec })
		}},
		{"DaemonSet", "DaemonSets", &appsv1.DaemonSetList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(d *appsv1.DaemonSet) *corev1.PodSpec { return &d.Spec.Template.Spec })
		}},
		{"ReplicaSet", "ReplicaSets", &appsv1.ReplicaSetList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(r *appsv1.ReplicaSet) *corev1.PodSpec { return &r.Spec.Template.Spec })
		}},
		{"ReplicationController", "ReplicationControllers", &corev1.ReplicationControllerList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(r *corev1.ReplicationController) *corev1.PodSpec {
				if r.Spec.Template == nil {
					return nil
				}
				return &r.Spec.Template.Spec
			})
		}},
		{"CronJob", "CronJobs", &batchv1.CronJobList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(c *batchv1.CronJob) *corev1.PodSpec { return &c.Spec.JobTemplate.Spec.Template.Spec })
		}},
		{"Job", "Jobs", &batchv1.JobList{}, func(o runtime.Object) *corev1.PodSpec {
			return specOf(o, func(j *batchv1.Job) *corev1.PodSpec {
				if finished(j) {
					return nil
				}
				return &j.Spec.Template.Spec
			})
		}},
	}
}

// specOf reads a workload that no other one controls: that one is listed itself.
func specOf[T client.Object](object runtime.Object, spec func(T) *corev1.PodSpec) *corev1.PodSpec {
	o, ok := object.(T)
	if !ok || metav1.GetControllerOf(o) != nil {
		return nil
	}
	return spec(o)
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
