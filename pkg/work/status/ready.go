package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// MayBeReady reports whether objects of a kind can say whether they are ready: workloads,
// and custom resources by their conditions.
func MayBeReady(kind schema.GroupKind) bool { return builtIn(kind) || custom(kind) }

// builtIn reports whether a kind of Kubernetes is one whose objects say whether they are
// ready.
func builtIn(kind schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{
		{Group: "apps", Kind: "Deployment"},
		{Group: "apps", Kind: "StatefulSet"},
		{Group: "apps", Kind: "DaemonSet"},
		{Group: "apps", Kind: "ReplicaSet"},
		{Group: "batch", Kind: "Job"},
		{Kind: "Pod"},
		{Kind: "PersistentVolumeClaim"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	}, kind)
}

// custom reports whether a kind is no kind of Kubernetes, by its group.
func custom(kind schema.GroupKind) bool {
	return strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io")
}

// Ready returns the condition Ready of an object by the rules of kstatus, and false if the
// object does not say whether it is ready. Unlike there, a Job is ready when it is complete,
// and a Pod that has failed is not.
// See docs/reference/wire-contract.md#readiness and
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md.
func Ready(object *unstructured.Unstructured, generation int64) (metav1.Condition, bool) {
	condition := metav1.Condition{Type: names.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	kind := object.GroupVersionKind().GroupKind()
	if says := builtIn(kind) || custom(kind) && evaluable(object); !says {
		return condition, false
	}
	ready, message, err := isReady(object)
	condition.Message, condition.Reason = message, names.ReasonResourceNotReady
	switch {
	case err != nil:
		condition.Status, condition.Message = metav1.ConditionUnknown, fmt.Sprintf("The status of the resource cannot be read: %v", err)
	case Finished(object):
		condition.Reason = names.ReasonResourceFinished
	case ready:
		condition.Reason = names.ReasonResourceReady
	}
	if ready {
		condition.Status = metav1.ConditionTrue
	}
	return bounded(condition), true
}

// isReady reports whether an object is ready, and what its status says about it.
func isReady(object *unstructured.Unstructured) (ready bool, message string, err error) {
	finished := Finished(object)
	if finished { // Its deletion, which can have begun, is not what it says.
		object = &unstructured.Unstructured{Object: maps.Clone(object.Object)}
		object.Object["metadata"] = map[string]any{}
	}
	result, err := kstatus.Compute(object)
	if err != nil {
		return false, "", err
	}
	ready = result.Status == kstatus.CurrentStatus
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		ready = ready && finished
	case schema.GroupKind{Kind: "Pod"}:
		ready = ready && phase(object) != "Failed"
	}
	return ready, result.Message, nil
}

// evaluable reports whether the controller of a custom resource says how it is: with the
// conditions, or the generation, that kstatus goes by.
func evaluable(object *unstructured.Unstructured) bool {
	if _, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "observedGeneration"); ok {
		return true
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return slices.Contains([]any{"Ready", string(kstatus.ConditionReconciling), string(kstatus.ConditionStalled)}, fields["type"])
	})
}

// Finished reports whether an object has done, or failed, what it is there for once: a Job
// with its condition Complete or Failed, and a Pod in such a phase, unless it was evicted
// and is to run always.
func Finished(object *unstructured.Unstructured) bool {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			fields, _ := c.(map[string]any)
			return slices.Contains([]any{"Complete", "Failed"}, fields["type"]) && fields["status"] == string(metav1.ConditionTrue)
		})
	case schema.GroupKind{Kind: "Pod"}:
		policy, _, _ := unstructured.NestedString(object.Object, "spec", "restartPolicy")
		return slices.Contains([]string{"OnFailure", "Never"}, policy) && slices.Contains([]string{"Succeeded", "Failed"}, phase(object))
	}
	return false
}

func phase(object *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase
}

// Unread returns the condition Ready of an object that may be ready but could not be read;
// err is why.
func Unread(err error, generation int64) metav1.Condition {
	return bounded(metav1.Condition{
		Type: names.ConditionReady, Status: metav1.ConditionUnknown, ObservedGeneration: generation,
		Reason: names.ReasonResourceNotReady, Message: fmt.Sprintf("The resource cannot be read: %v", err),
	})
}

// AvailableOnceFinished returns the condition Available of an object that has finished and
// is gone since: as its manifest says, it was there.
func AvailableOnceFinished() metav1.Condition {
	return metav1.Condition{
		Type: workv1.ManifestAvailable, Status: metav1.ConditionTrue,
		Reason: names.ReasonResourceAvailable, Message: names.MessageResourceFinished,
	}
}

// readyWork returns the condition Ready of a work: True if everything is applied and
// available, and ready where the resources say whether they are.
func readyWork(manifests []workv1.ManifestCondition) metav1.Condition {
	var missing []string
	for i := range manifests {
		if lacks, why := unready(manifests[i].Conditions); lacks {
			missing = append(missing, why)
		}
	}
	if len(missing) == 0 && len(manifests) > 0 {
		return metav1.Condition{
			Type: names.ConditionReady, Status: metav1.ConditionTrue,
			Reason: names.ReasonResourcesReady, Message: names.MessageResourcesReady,
		}
	}
	condition := metav1.Condition{
		Type: names.ConditionReady, Status: metav1.ConditionFalse, Reason: names.ReasonResourcesNotReady,
		Message: fmt.Sprintf("%d of %d resources are not ready", len(missing), len(manifests)),
	}
	if len(missing) == 1 && missing[0] != "" {
		condition.Message += ": " + missing[0]
	}
	return bounded(condition)
}

// unready reports whether a manifest lacks something to be ready, and what it says about it.
func unready(conditions []metav1.Condition) (lacks bool, why string) {
	for _, kind := range []string{workv1.ManifestApplied, workv1.ManifestAvailable, names.ConditionReady} {
		c := apimeta.FindStatusCondition(conditions, kind)
		switch {
		case c == nil && kind != names.ConditionReady:
			return true, ""
		case c != nil && c.Status != metav1.ConditionTrue:
			return true, c.Message
		}
	}
	return false, ""
}
