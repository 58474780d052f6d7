package apply

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrFailed is wrapped by the error of a wait that ended early, because an
// object can no longer reach the wanted state.
var ErrFailed = errors.New("failed for good")

// Result is the result of a Check.
type Result struct {
	// Done is true for an object in the wanted state.
	Done bool
	// Failed is true for an object that waiting cannot bring there.
	Failed bool
	// Message describes the missing state, with the condition that reports it.
	Message string
}

// Check evaluates an object. It gets nil when the object does not exist.
type Check func(obj *unstructured.Unstructured) Result

// Gone is done when the object does not exist.
func Gone() Check {
	return func(obj *unstructured.Unstructured) Result {
		switch {
		case obj == nil:
			return Result{Done: true}
		case obj.GetDeletionTimestamp() == nil:
			return Result{Message: "still exists"}
		case len(obj.GetFinalizers()) > 0:
			return Result{Message: fmt.Sprintf("is being deleted and waits for its finalizers %v", obj.GetFinalizers())}
		}
		if condition, ok := ConditionOf(obj, "NamespaceContentRemaining"); ok && condition["status"] == conditionTrue {
			return Result{Message: "is being deleted: " + text(condition, "message")}
		}
		return Result{Message: "is being deleted"}
	}
}

// Established is done when a CRD is served. A CRD whose names are taken has failed.
func Established() Check {
	return func(obj *unstructured.Unstructured) Result {
		if obj == nil {
			return Result{Message: "does not exist yet"}
		}
		if c, ok := ConditionOf(obj, "NamesAccepted"); ok && c["status"] == "False" {
			return Result{Failed: true, Message: "NamesAccepted is False: " + text(c, "message")}
		}
		return Condition("Established", conditionTrue)(obj)
	}
}

// Condition is done when the condition of a type has a status, for the current
// generation where the condition or the status records one.
func Condition(conditionType, status string) Check {
	return func(obj *unstructured.Unstructured) Result {
		if obj == nil {
			return Result{Message: "does not exist yet"}
		}
		condition, ok := ConditionOf(obj, conditionType)
		if !ok {
			return Result{Message: fmt.Sprintf("has no condition %s yet", conditionType)}
		}
		if condition["status"] != status {
			return Result{Message: describe(condition)}
		}
		if observed, ok := observedGeneration(obj, condition); ok && observed < obj.GetGeneration() {
			return Result{Message: conditionType + " is not up to date with the last change yet"}
		}
		return Result{Done: true}
	}
}

// Conditions is done when every one of checks is, and failed when any is. The
// message is that of the first one that is not done.
func Conditions(checks ...Check) Check {
	return func(obj *unstructured.Unstructured) Result {
		all := Result{Done: true}
		for _, check := range checks {
			result := check(obj)
			if result.Failed {
				return result
			}
			if !result.Done && all.Done {
				all = result
			}
		}
		return all
	}
}

// DeploymentReady is done when every replica of a Deployment runs the current
// template and is available. It has failed when the Deployment has given up.
func DeploymentReady() Check {
	return func(obj *unstructured.Unstructured) Result {
		if obj == nil {
			return Result{Message: "does not exist yet"}
		}
		if c, ok := ConditionOf(obj, "Progressing"); ok && c["reason"] == "ProgressDeadlineExceeded" {
			return Result{Failed: true, Message: describe(c)}
		}
		want := count(obj, 1, "spec", "replicas")
		updated := count(obj, 0, "status", "updatedReplicas")
		available := count(obj, 0, "status", "availableReplicas")
		total := count(obj, 0, "status", "replicas")
		switch {
		case count(obj, 0, "status", "observedGeneration") < obj.GetGeneration():
			return Result{Message: "the deployment controller has not seen the last change yet"}
		case updated < want:
			return Result{Message: fmt.Sprintf("%d of %d replicas are updated%s", updated, want, why(obj))}
		case total > updated:
			return Result{Message: fmt.Sprintf("%d old replicas are still running", total-updated)}
		case available < want:
			return Result{Message: fmt.Sprintf("%d of %d replicas are available%s", available, want, why(obj))}
		}
		return Result{Done: true}
	}
}

// why returns what a Deployment reports about replicas that cannot be created.
func why(deployment *unstructured.Unstructured) string {
	if c, ok := ConditionOf(deployment, "ReplicaFailure"); ok && c["status"] == conditionTrue {
		return " (" + text(c, "message") + ")"
	}
	return ""
}

func count(obj *unstructured.Unstructured, absent int64, path ...string) int64 {
	n, found, err := unstructured.NestedInt64(obj.Object, path...)
	if err != nil || !found {
		return absent
	}
	return n
}

func observedGeneration(obj *unstructured.Unstructured, condition map[string]any) (int64, bool) {
	if n, ok := condition["observedGeneration"].(int64); ok && n > 0 {
		return n, true
	}
	n, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return n, err == nil && found
}

func describe(condition map[string]any) string {
	s := fmt.Sprintf("%s is %s", text(condition, "type"), text(condition, "status"))
	if reason := text(condition, "reason"); reason != "" {
		s += " (" + reason + ")"
	}
	if message := text(condition, "message"); message != "" {
		s += ": " + message
	}
	return s
}
