package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publish writes the Pod's status if it differs from what was written last, or others
// have changed it, and reports whether the API server has it.
func (w *worker) publish(ctx context.Context) bool {
	if ended(w.pod) {
		return true
	}
	status := w.status()
	if w.published != nil && equality.Semantic.DeepEqual(*w.published, status) && !w.contradicted(status) {
		return true
	}
	// The UID keeps the status of this Pod from a later one of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.uid}, "status": status})
	if err != nil {
		return false
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}}
	err = w.node.api.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		w.node.config.Log.Info("The status of a Pod could not be written", "pod", w.namespace+"/"+w.name, "error", err.Error())
		return false
	}
	w.published = &status
	return true
}

// contradicted reports whether the API server has another condition than the node says:
// the node lifecycle controller marks Pods as not ready when their node seems gone. What
// was written a moment ago is perhaps not seen yet; to write it again changes nothing.
func (w *worker) contradicted(status corev1.PodStatus) bool {
	return slices.ContainsFunc(w.pod.Status.Conditions, func(seen corev1.PodCondition) bool {
		return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == seen.Type && c.Status != seen.Status
		})
	})
}

// status computes the whole status from what the worker knows.
func (w *worker) status() corev1.PodStatus {
	before := w.pod.Status
	if w.published != nil {
		before = *w.published
	}
	status := corev1.PodStatus{
		Phase:     w.phase(),
		HostIP:    w.pod.Status.HostIP,
		HostIPs:   []corev1.HostIP{{IP: w.pod.Status.HostIP}},
		QOSClass:  w.pod.Status.QOSClass,
		StartTime: w.pod.Status.StartTime,
	}
	if status.StartTime == nil {
		status.StartTime = before.StartTime
	}
	if status.StartTime == nil {
		status.StartTime = new(metav1.NewTime(w.node.config.Clock.Now()))
	}
	if w.ip != "" {
		status.PodIP, status.PodIPs = w.ip, []corev1.PodIP{{IP: w.ip}}
	}
	for _, c := range w.init {
		s := w.containerStatus(c)
		s.Ready = c.succeeded()
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	for _, c := range w.main {
		status.ContainerStatuses = append(status.ContainerStatuses, w.containerStatus(c))
	}
	status.Conditions = append(w.conditions(before.Conditions, status.Phase), others(w.pod.Status.Conditions)...)
	return status
}

func (w *worker) containerStatus(c *container) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, RestartCount: c.restarts,
		State: c.state, LastTerminationState: c.last,
		Ready: c.ready, Started: new(c.started),
	}
	if c.binary != "" {
		s.ImageID = "local://" + c.binary
		s.ContainerID = w.id(c)
	}
	return s
}

// id names the latest start of a container.
func (w *worker) id(c *container) string {
	return fmt.Sprintf("local://%s/%s/%d", w.uid, c.spec.Name, c.restarts)
}

func (w *worker) phase() corev1.PodPhase {
	all := func(is func(*container) bool) bool {
		return !slices.ContainsFunc(w.main, func(c *container) bool { return !is(c) })
	}
	done := func(c *container) bool { return c.done(w.pod) }
	switch {
	case slices.ContainsFunc(w.init, func(c *container) bool { return done(c) && !c.succeeded() }):
		return corev1.PodFailed
	case all(done) && all((*container).succeeded):
		return corev1.PodSucceeded
	case all(done):
		return corev1.PodFailed
	case all(func(c *container) bool { return done(c) || c.process != nil || c.restarts > 0 }):
		return corev1.PodRunning
	default:
		return corev1.PodPending
	}
}

// conditions computes the conditions, which keep the time of their last change.
func (w *worker) conditions(before []corev1.PodCondition, phase corev1.PodPhase) []corev1.PodCondition {
	var uninitialized, unready []string
	for _, c := range w.init {
		if !c.succeeded() {
			uninitialized = append(uninitialized, c.spec.Name)
		}
	}
	for _, c := range w.main {
		if !c.ready {
			unready = append(unready, c.spec.Name)
		}
	}
	over := phase == corev1.PodSucceeded
	conditions := []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, nil, !w.prepared, "", false),
		condition(corev1.PodInitialized, uninitialized, false, "ContainersNotInitialized", over),
		condition(corev1.ContainersReady, unready, false, "ContainersNotReady", over),
		condition(corev1.PodReady, unready, false, "ContainersNotReady", over),
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	now := metav1.NewTime(w.node.config.Clock.Now())
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = now
		for _, old := range before {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return conditions
}

// others returns the conditions of other writers, such as the reason of an eviction,
// which stay.
func others(conditions []corev1.PodCondition) []corev1.PodCondition {
	ours := []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, corev1.PodScheduled,
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(c corev1.PodCondition) bool { return slices.Contains(ours, c.Type) })
}

func condition(kind corev1.PodConditionType, missing []string, not bool, reason string, over bool) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	switch {
	case over && kind != corev1.PodInitialized:
		c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
	case len(missing) > 0:
		c.Status, c.Reason = corev1.ConditionFalse, reason
		c.Message = fmt.Sprintf("not there yet: [%s]", strings.Join(missing, " "))
	case not:
		c.Status = corev1.ConditionFalse
	}
	return c
}
