package podproblem

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OfDeployment returns the problem of the first Pod of a Deployment that has
// one, and "" if none has.
func OfDeployment(ctx context.Context, reader client.Reader, d *appsv1.Deployment) (string, error) {
	pods, err := Pods(ctx, reader, d)
	for i := range pods {
		if problem := Of(&pods[i]); problem != "" {
			return problem, nil
		}
	}
	return "", err
}

// Pods returns the Pods of a Deployment.
func Pods(ctx context.Context, reader client.Reader, d *appsv1.Deployment) ([]corev1.Pod, error) {
	if d.Spec.Selector == nil {
		return nil, nil
	}
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
	if err != nil {
		return nil, fmt.Errorf("pods of deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return pods.Items, nil
}

const cannotPull = " cannot pull the image "

// Of returns what keeps a Pod from running, and "" if nothing does or if it is
// only starting.
func Of(pod *corev1.Pod) string {
	if !pod.DeletionTimestamp.IsZero() {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s cannot be scheduled%s", pod.Name, because(c.Reason, fmt.Sprintf("%.*s", longestMessage, c.Message)))
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if problem := ofContainer(pod, &status); problem != "" {
			return problem
		}
	}
	return ""
}

// Unpulled reports whether an image of a Pod cannot be pulled.
func Unpulled(pod *corev1.Pod) bool { return PullReason(pod) != "" }

// PullReason is why the first image of a Pod that cannot be pulled was not, in the word of
// the kubelet, and "" if all were pulled.
func PullReason(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if unpulled(&status) {
			return status.State.Waiting.Reason
		}
	}
	return ""
}

func unpulled(status *corev1.ContainerStatus) bool {
	waiting := status.State.Waiting
	return waiting != nil && slices.Contains([]string{
		"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable",
	}, waiting.Reason)
}

// Same reports whether two problems are one in other words: of an image that cannot be
// pulled, a kubelet says why, and between two tries that it backs off.
func Same(a, b string) bool {
	headA, _, _ := strings.Cut(a, " (")
	headB, _, _ := strings.Cut(b, " (")
	return a == b || headA == headB && strings.Contains(headA, cannotPull)
}

func ofContainer(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	waiting := status.State.Waiting
	if waiting == nil {
		return ""
	}
	switch {
	case slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waiting.Reason):
		return ""
	case unpulled(status):
		reason, message := ofPull(waiting)
		return fmt.Sprintf("pod %s"+cannotPull+"%s%s", pod.Name, imageOf(pod, status), because(reason, cause(message)))
	case waiting.Reason == "CrashLoopBackOff":
		reason, message := waiting.Reason, waiting.Message
		if last := status.LastTerminationState.Terminated; last != nil {
			reason, message = fmt.Sprintf("exit code %d", last.ExitCode), lastLine(last.Message)
		}
		return fmt.Sprintf("container %s of pod %s keeps crashing%s", status.Name, pod.Name, because(reason, cause(message)))
	}
	return fmt.Sprintf("container %s of pod %s does not start%s", status.Name, pod.Name, because(waiting.Reason, cause(waiting.Message)))
}

// imageOf is the image that a container is to run: its status may name another
// one, or none, before it is pulled.
func imageOf(pod *corev1.Pod, status *corev1.ContainerStatus) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == status.Name {
			return c.Image
		}
	}
	return status.Image
}

// ofPull is why an image cannot be pulled. Between two tries, a kubelet says that it backs
// off, and then what it said before: the problem is the same one.
func ofPull(waiting *corev1.ContainerStateWaiting) (reason, message string) {
	if waiting.Reason == "ImagePullBackOff" {
		if _, last, ok := strings.Cut(waiting.Message, ": ErrImagePull: "); ok {
			return "ErrImagePull", last
		}
	}
	return waiting.Reason, waiting.Message
}

// longestMessage bounds what a kubelet, and through it a container, says.
const longestMessage = 300

// cause is the end of a long message, where a chain of errors has the first one.
func cause(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return "..." + strings.ToValidUTF8(message[len(message)-longestMessage:], "")
}

// lastLine is the last line of a message with those that are indented below it. The message
// of a container whose terminationMessagePolicy is FallbackToLogsOnError is the end of its
// log, where the line before the end may be about anything.
func lastLine(message string) string {
	lines := strings.Split(strings.TrimRight(message, "\n"), "\n")
	for i, line := range slices.Backward(lines) {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			lines = lines[i:]
			break
		}
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

func because(reason, message string) string {
	if message == "" {
		return " (" + reason + ")"
	}
	return fmt.Sprintf(" (%s: %s)", reason, message)
}
