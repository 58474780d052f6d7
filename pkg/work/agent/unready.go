package agent

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/podproblem"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// mostPods is how many Pods of a workload are looked at for a problem.
const mostPods = 50

// explainUnready has what is reported of an object that is not ready name the problem of its
// Pods, and the object looked at again: that problem comes and goes without a change of it.
func (p *pass) explainUnready(ctx context.Context, it *item, m *mark, object *unstructured.Unstructured) {
	recheck := time.Duration(0)
	defer func() { m.recheck = recheck }()
	ready := apimeta.FindStatusCondition(it.found.Conditions, names.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != names.ReasonResourceNotReady {
		return
	}
	recheck = p.agent.config.StatusSyncInterval
	entry, _ := p.before.Find(it.meta)
	before := apimeta.FindStatusCondition(entry.Conditions, names.ConditionReady)
	if before != nil && before.Status == metav1.ConditionFalse { // It is not only starting.
		*ready = status.Remark(*ready, p.podProblem(ctx, object, ready.Message, before.Message))
	}
	if before != nil && before.Message == ready.Message {
		recheck = min(max(2*m.recheck, recheck), mostRepair)
	}
	p.wait(recheck)
}

// podProblem returns the problem of the first Pod of an object that has one. A container
// that keeps crashing runs in between: until the object says something else than text, what
// was reported before holds.
func (p *pass) podProblem(ctx context.Context, object *unstructured.Unstructured, text, before string) string {
	for _, pod := range p.pods(ctx, object) {
		if problem := podproblem.Of(&pod); problem != "" {
			return problem
		}
	}
	problem, _ := strings.CutPrefix(before, text+"; ")
	if problem == before {
		return ""
	}
	return problem
}

// pods are the Pods of a workload: a Pod itself, or those that its selector selects. There
// are none if the executor, or the agent, may not list them.
func (p *pass) pods(ctx context.Context, object *unstructured.Unstructured) []corev1.Pod {
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") {
		return decodePods(*object)
	}
	selector := selectorOf(object)
	if selector == "" || p.applier == nil {
		return nil
	}
	list, err := p.applier.Client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(object.GetNamespace()).
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
