package node_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestRestartsAndLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(t, f.pod("pod", corev1.Container{Env: as("serve")}))
	pod := f.await(t, "pod", "it is ready", ready)
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	if _, err := logsOf(t, pod, corev1.PodLogOptions{Previous: true}); err == nil {
		t.Error("there are logs of an earlier start before there was one")
	}
	f.get(t, pod, "/crash")
	f.await(t, "pod", "it was restarted", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses[0]
		return s.RestartCount == 1 && s.LastTerminationState.Terminated != nil &&
			s.LastTerminationState.Terminated.ExitCode == 3 && s.LastTerminationState.Terminated.Message == "" && s.State.Running != nil
	})
	for want, options := range map[string]corev1.PodLogOptions{
		"serving\n":           {},
		"serving\ncrashing\n": {Previous: true},
		"crashing\n":          {Previous: true, TailLines: ptr.To[int64](1)},
	} {
		eventually(t, "the log "+want, func(context.Context) (bool, error) {
			got, err := logsOf(t, pod, options)
			return got == want, err
		})
	}
	f.create(t, f.pod("loop", corev1.Container{
		Env: as("fail"), Args: []string{"x"}, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}))
	f.await(t, "loop", "it is in CrashLoopBackOff", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff" &&
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message == "failing with [x]\n"
	})
	once := f.pod("once", corev1.Container{Env: as("fail")})
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(t, once)
	f.await(t, "once", "it has failed", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed && pod.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
			PeriodSeconds: 1, FailureThreshold: 2,
		}
	}
	pod := f.pod("pod", corev1.Container{
		Env: as("serve"), Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 8000}},
		ReadinessProbe: probe("/health"), LivenessProbe: probe("/file?path=/state/alive"),
		StartupProbe: probe("/file?path=/state/alive"),
		VolumeMounts: []corev1.VolumeMount{{Name: "state", MountPath: "/state"}},
	})
	pod.Spec.Containers[0].StartupProbe.FailureThreshold = 100
	pod.Spec.Volumes = []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	f.create(t, pod)
	pod = f.await(t, "pod", "it runs", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	if ready(pod) || *pod.Status.ContainerStatuses[0].Started {
		t.Error("ready or started before its probes have passed")
	}
	eventually(t, "an answer", func(context.Context) (bool, error) { return strings.HasPrefix(f.get(t, pod, "/"), "{"), nil })
	f.get(t, pod, "/set?path=/state/alive")
	f.get(t, pod, "/set?path=/state/well")
	f.await(t, "pod", "it is ready", ready)
	f.get(t, pod, "/unset?path=/state/well")
	pod = f.await(t, "pod", "it is not ready", func(pod *corev1.Pod) bool { return !ready(pod) })
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("%d restarts for not being ready", n)
	}
	f.get(t, pod, "/unset?path=/state/alive")
	f.await(t, "pod", "it was restarted", func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount > 0 })
}

func TestWhatCannotRunSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unknown := f.pod("unknown", corev1.Container{})
	unknown.Spec.Containers[0].Image = "example.com/other:v1"
	command := f.pod("command", corev1.Container{Command: []string{"/bin/sh"}})
	missing := f.pod("missing", corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "x"},
	}}}})
	host := f.pod("host", corev1.Container{})
	host.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	for _, test := range []struct {
		pod             *corev1.Pod
		reason, message string
	}{
		{unknown, "ErrImagePull", "image is not known to this local cluster: example.com/other:v1; known are: " + image},
		{unknown, "ImagePullBackOff", "known are: " + image},
		{command, "RunContainerError", `the command "/bin/sh" is not in the image`},
		{missing, "CreateContainerConfigError", `configmaps "none" not found`},
		{host, "ContainerCreating", "this kind of volume is not supported by local nodes"},
	} {
		if test.pod.UID == "" {
			f.create(t, test.pod)
		}
		pod := f.await(t, test.pod.Name, test.reason, func(pod *corev1.Pod) bool {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
				pod.Status.ContainerStatuses[0].State.Waiting.Reason == test.reason &&
				strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, test.message)
		})
		if pod.Status.Phase != corev1.PodPending {
			t.Errorf("%s is %s, want Pending", pod.Name, pod.Status.Phase)
		}
	}
}
