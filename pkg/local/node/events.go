package node

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// events records what happens to one Pod. The same event is not created twice: its
// count goes up. Nothing depends on events, so a failure to create one is no error.
type events struct {
	node *Node
	mu   sync.Mutex
	made map[string]*corev1.Event
}

func (e *events) normal(ctx context.Context, pod *corev1.Pod, reason, format string, args ...any) {
	e.record(ctx, pod, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

func (e *events) warn(ctx context.Context, pod *corev1.Pod, reason, format string, args ...any) {
	e.record(ctx, pod, corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

func (e *events) record(ctx context.Context, pod *corev1.Pod, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := metav1.NewTime(e.node.config.Clock.Now())
	key := reason + "\x00" + message
	if known, ok := e.made[key]; ok {
		before := known.DeepCopy()
		known.Count++
		known.LastTimestamp = now
		if e.node.api.Patch(ctx, known, client.MergeFrom(before)) == nil {
			return
		}
	}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: kind, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: "kubelet", Host: e.node.config.Name},
		ReportingController: "kubelet",
		ReportingInstance:   e.node.config.Name,
	}
	if e.node.api.Create(ctx, event) == nil {
		e.made[key] = event
	}
}
