package agent

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// mostPods is the largest number of Pods of a workload that the agent reads for a problem.
const mostPods = 50

// explainUnready has what is reported of an object that is not ready name the problem of its
// Pods, and the object looked at again: that problem comes and goes without a change of it.
// That the object becomes ready is read soon; how far it has come is reported as often as
// every other status.
func (r *reader) explainUnready(ctx context.Context, o *object, returned *unstructured.Unstructured) {
	last := o.recheck
	o.recheck = 0
	ready := apimeta.FindStatusCondition(o.found.Conditions, names.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != names.ReasonResourceNotReady {
		return
	}
	o.interval, o.recheck = min(o.interval, watchInterval), r.agent.config.StatusSyncInterval
	before := r.history.condition(o, names.ConditionReady)
	switch {
	case before == nil || before.Status != metav1.ConditionFalse: // It is only starting.
		o.explained = r.now
	case r.now.Before(o.explained.Add(r.agent.config.StatusSyncInterval)):
		ready.Message = before.Message
	default:
		o.explained = r.now
		*ready = status.Remark(*ready, r.podProblem(ctx, returned, ready.Message, before.Message))
		if before.Message == ready.Message {
			o.recheck = min(max(2*last, o.recheck), mostRepair)
		}
	}
	r.requeue.recheck(o.recheck)
}

// podProblem returns the problem of the first Pod of an object that has one. While the
// object says the same, text, the problem in the message before still stands: a container
// that keeps crashing runs in between, and other words for a problem are no news.
func (r *reader) podProblem(ctx context.Context, object *unstructured.Unstructured, text, before string) string {
	last, same := strings.CutPrefix(before, text+"; ")
	if !same {
		last = ""
	}
	for _, pod := range r.pods(ctx, object) {
		switch problem := podproblem.Of(&pod); {
		case problem == "":
		case podproblem.Same(problem, last):
			return last
		default:
			return problem
		}
	}
	return last
}

// pods are the Pods of a workload: a Pod itself, or those that its selector selects. There
// are none if the executor, or the agent, may not list them.
func (r *reader) pods(ctx context.Context, object *unstructured.Unstructured) []corev1.Pod {
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") {
		return decodePods(*object)
	}
	selector := selectorOf(object)
	client := r.impersonator.client()
	if selector == "" || client == nil {
		return nil
	}
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(object.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: mostPods})
	if err != nil {
		return nil
	}
	return decodePods(list.Items...)
}

// selectorOf is the selector of the Pods of a workload of Kubernetes; empty for others.
func selectorOf(object *unstructured.Unstructured) string {
	if group := object.GroupVersionKind().Group; group != "apps" && group != "batch" {
		return ""
	}
	fields, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return ""
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "" // It would select all Pods.
	}
	return metav1.FormatLabelSelector(&selector)
}

func decodePods(objects ...unstructured.Unstructured) []corev1.Pod {
	pods := make([]corev1.Pod, 0, len(objects))
	for i := range objects {
		var pod corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &pod) == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}
