package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

// Waiting reasons, as kubelets give them.
const (
	reasonCreating    = "ContainerCreating"
	reasonInitalizing = "PodInitializing"
	reasonErrImage    = "ErrImagePull"
	reasonBackOffPull = "ImagePullBackOff"
	reasonConfig      = "CreateContainerConfigError"
	reasonRun         = "RunContainerError"
	reasonCrashLoop   = "CrashLoopBackOff"
)

const (
	firstBackOff = time.Second
	maxBackOff   = time.Minute
	// resetBackOff is how long a container must run for its next end to be the
	// first one again.
	resetBackOff = 2 * time.Minute
	killedStatus = 137
)

// container is a container of a Pod as its worker knows it.
type container struct {
	spec  *corev1.Container
	init  bool
	state corev1.ContainerState
	last  corev1.ContainerState
	// process is not nil while the container runs.
	process  *process.Process
	restarts int32
	binary   string
	ready    bool
	started  bool
	backOff  time.Duration
	// notBefore is when it may be tried again.
	notBefore time.Time
	// cancel ends the probes of the current start.
	cancel context.CancelFunc
}

func newContainer(spec *corev1.Container, init bool, before *corev1.ContainerStatus, policy corev1.RestartPolicy) *container {
	c := &container{spec: spec, init: init, cancel: func() {}}
	c.wait(reasonCreating, "")
	if before == nil || before.ContainerID == "" {
		return c
	}
	// An earlier run of the node has started it. What ran then is gone.
	c.restarts = before.RestartCount
	c.last = before.LastTerminationState
	switch {
	case before.State.Terminated != nil && !restartable(policy, before.State.Terminated.ExitCode):
		c.state = before.State
		return c
	case before.State.Terminated != nil:
		c.last = before.State
	case before.State.Running != nil:
		c.last = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: killedStatus, Reason: "ContainerStatusUnknown",
			Message:   "The node was restarted and the container with it.",
			StartedAt: before.State.Running.StartedAt, ContainerID: before.ContainerID,
		}}
	}
	c.restarts++
	return c
}

// restartable reports whether a container that ended with a code is started again.
func restartable(policy corev1.RestartPolicy, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

func (c *container) wait(reason, message string) {
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.ready, c.started = false, false
}

// delay sets when to try again, and returns how long that is from now.
func (c *container) delay(now time.Time) time.Duration {
	c.backOff = min(max(2*c.backOff, firstBackOff), maxBackOff)
	c.notBefore = now.Add(c.backOff)
	return c.backOff
}

// exited records the end of the container's process. The message is for the status of a
// process that failed.
func (c *container) exited(pod *corev1.Pod, id, message string, now time.Time) {
	c.cancel()
	terminated := &corev1.ContainerStateTerminated{
		Reason: "Completed", FinishedAt: metav1.NewTime(now), ContainerID: id,
	}
	if c.state.Running != nil {
		terminated.StartedAt = c.state.Running.StartedAt
		if now.Sub(terminated.StartedAt.Time) > resetBackOff {
			c.backOff = 0
		}
	}
	if status, ok := c.process.Status(); ok {
		terminated.ExitCode = int32(status.ExitStatus()) //nolint:gosec // a byte
		if status.Signaled() {
			terminated.Signal = int32(status.Signal()) //nolint:gosec // below 65
			terminated.ExitCode = 128 + terminated.Signal
		}
	}
	if terminated.ExitCode != 0 {
		terminated.Reason, terminated.Message = "Error", message
	}
	c.process = nil
	c.ready, c.started = false, false
	c.state = corev1.ContainerState{Terminated: terminated}
	if c.done(pod) {
		return
	}
	c.last = c.state
	c.restarts++
	wait := c.delay(now)
	if wait <= firstBackOff {
		// The first restart is at once.
		c.notBefore = now
		return
	}
	c.wait(reasonCrashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s", wait, c.spec.Name, pod.Name, pod.Namespace))
}

// done reports whether the container has ended for good.
func (c *container) done(pod *corev1.Pod) bool {
	if c.state.Terminated == nil || c.process != nil {
		return false
	}
	policy := pod.Spec.RestartPolicy
	if c.init && policy == corev1.RestartPolicyAlways {
		policy = corev1.RestartPolicyOnFailure
	}
	return pod.DeletionTimestamp != nil || !restartable(policy, c.state.Terminated.ExitCode)
}

// succeeded reports whether the container has ended well for good.
func (c *container) succeeded() bool {
	return c.process == nil && c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}
