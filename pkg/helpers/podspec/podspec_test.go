package podspec_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podspec"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, object := range []client.Object{
		&corev1.Pod{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{},
		&corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}},
		&batchv1.Job{}, &batchv1.CronJob{},
	} {
		spec := podspec.Of(object)
		if spec == nil {
			t.Fatalf("%T has no specification", object)
		}
		spec.NodeName = "changed"
		if podspec.Of(object).NodeName != "changed" {
			t.Errorf("%T: the specification is a copy", object)
		}
	}
	for _, object := range []client.Object{&corev1.ReplicationController{}, &corev1.Secret{}} {
		if podspec.Of(object) != nil {
			t.Errorf("%T has a specification", object)
		}
	}
}
