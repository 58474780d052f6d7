package podproblem_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
)

const unknownRegistry = `failed to pull and unpack image "example.com/i:latest": failed to resolve reference "example.com/i:latest": ` +
	`failed to do request: Head "https://example.com/v2/i/manifests/latest": dial tcp: lookup example.com on 172.18.0.1:53: no such host`

func TestOf(t *testing.T) {
	t.Parallel()
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	crashing := waiting("CrashLoopBackOff", "back-off 10s")
	crashing.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no flag"}
	logged := *crashing.DeepCopy()
	logged.ContainerStatuses[0].LastTerminationState.Terminated.Message = "I1125 started\nError: the hub is unknown\n  Try: join\n"
	for _, tc := range []struct {
		name     string
		status   corev1.PodStatus
		want     string
		unpulled bool
	}{
		{name: "it is only starting", status: waiting("ContainerCreating", "")},
		{name: "its image cannot be pulled", status: waiting("ErrImagePull", "not found"), want: "pod p cannot pull the image example.com/i (ErrImagePull: not found)", unpulled: true},
		// As kubelet 1.36 has it with containerd 2.3.
		{
			name: "the registry of its image is unknown", status: waiting("ErrImagePull", unknownRegistry), unpulled: true,
			want: "pod p cannot pull the image example.com/i (ErrImagePull: " + unknownRegistry + ")",
		},
		{
			name: "it waits for the next try", status: waiting("ImagePullBackOff", `Back-off pulling image "example.com/i": ErrImagePull: `+unknownRegistry), unpulled: true,
			want: "pod p cannot pull the image example.com/i (ErrImagePull: " + unknownRegistry + ")",
		},
		{
			name: "it waits, with an older kubelet", status: waiting("ImagePullBackOff", `Back-off pulling image "example.com/i"`), unpulled: true,
			want: `pod p cannot pull the image example.com/i (ImagePullBackOff: Back-off pulling image "example.com/i")`,
		},
		{
			name: "the cause is at the end of a long message", status: waiting("ErrImagePull", strings.Repeat("x", 500)+": no such host"), unpulled: true,
			want: "pod p cannot pull the image example.com/i (ErrImagePull: ..." + strings.Repeat("x", 286) + ": no such host)",
		},
		{name: "it crashes", status: crashing, want: "container c of pod p keeps crashing (exit code 3: no flag)"},
		{
			name: "it crashes, and its message is the end of its log", status: logged,
			want: "container c of pod p keeps crashing (exit code 3: Error: the hub is unknown Try: join)",
		},
		{name: "it does not start", status: waiting("CreateContainerConfigError", ""), want: "container c of pod p does not start (CreateContainerConfigError)"},
		{
			name: "it fits on no node", want: "pod p cannot be scheduled (Unschedulable: 0/1 nodes)",
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes"}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: tc.status,
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/i"}}},
			}
			if got := podproblem.Of(pod); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := podproblem.Unpulled(pod); got != tc.unpulled {
				t.Errorf("unpulled: %v", got)
			}
			pod.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
			if got := podproblem.Of(pod); got != "" {
				t.Errorf("being deleted: %q", got)
			}
		})
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	const pull = "pod a cannot pull the image example.com/web:1 (ErrImagePull: not found)"
	for other, want := range map[string]bool{
		pull: true,
		"pod a cannot pull the image example.com/web:1 (ImagePullBackOff: Back-off pulling image)": true,
		"pod a cannot pull the image example.com/web:2 (ErrImagePull: not found)":                  false,
		"pod b cannot pull the image example.com/web:1 (ErrImagePull: not found)":                  false,
		"container main of pod a keeps crashing (exit code 1)":                                     false,
		"": false,
	} {
		if got := podproblem.Same(pull, other); got != want {
			t.Errorf("%q: %v", other, got)
		}
	}
	if podproblem.Same("container main of pod a keeps crashing (exit code 1)", "container main of pod a keeps crashing (exit code 137)") {
		t.Error("another exit code is news")
	}
}
