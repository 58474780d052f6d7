package apply

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrFailed is wrapped by the error of a wait that ended early, because an
// object can no longer reach the wanted state.
var ErrFailed = errors.New("failed for good")

// Verdict is what a Check says about an object.
type Verdict struct {
	// Done says that the object is in the wanted state.
	Done bool
	// Failed says that it will not get there by waiting.
	Failed bool
	// Message says what is missing, with the condition that tells it.
	Message string
}

// Check judges an object. It gets nil when the object does not exist.
type Check func(obj *unstructured.Unstructured) Verdict

// Exists is done when the object exists.
func Exists() Check {
	return func(obj *unstructured.Unstructured) Verdict {
		if obj == nil {
			return Verdict{Message: "does not exist yet"}
		}
		return Verdict{Done: true}
	}
}

// Gone is done when the object does not exist.
func Gone() Check {
	return func(obj *unstructured.Unstructured) Verdict {
		switch {
		case obj == nil:
			return Verdict{Done: true}
		case obj.GetDeletionTimestamp() == nil:
			return Verdict{Message: "still exists"}
		case len(obj.GetFinalizers()) > 0:
			return Verdict{Message: fmt.Sprintf("is being deleted and waits for its finalizers %v", obj.GetFinalizers())}
		}
		if condition, ok := conditionOf(obj, "NamespaceContentRemaining"); ok && condition["status"] == conditionTrue {
			return Verdict{Message: "is being deleted: " + text(condition, "message")}
		}
		return Verdict{Message: "is being deleted"}
	}
}

// Established is done when a CRD is served. A CRD whose names are taken has failed.
func Established() Check {
	return func(obj *unstructured.Unstructured) Verdict {
		if obj == nil {
			return Verdict{Message: "does not exist yet"}
		}
		if c, ok := conditionOf(obj, "NamesAccepted"); ok && c["status"] == "False" {
			return Verdict{Failed: true, Message: "NamesAccepted is False: " + text(c, "message")}
		}
		return Condition("Established", conditionTrue)(obj)
	}
}

// Condition is done when the condition of a type has a status, as judged for
// the current generation where the condition or the status tells that.
func Condition(conditionType, status string) Check {
	return func(obj *unstructured.Unstructured) Verdict {
		if obj == nil {
			return Verdict{Message: "does not exist yet"}
		}
		condition, ok := conditionOf(obj, conditionType)
		if !ok {
			return Verdict{Message: fmt.Sprintf("has no condition %s yet", conditionType)}
		}
		if condition["status"] != status {
			return Verdict{Message: describe(condition)}
		}
		if observed, ok := observedGeneration(obj, condition); ok && observed < obj.GetGeneration() {
			return Verdict{Message: conditionType + " is not up to date with the last change yet"}
		}
		return Verdict{Done: true}
	}
}

// Conditions is done when every one of checks is, and failed when any is. The
// message is that of the first one that is not done.
func Conditions(checks ...Check) Check {
	return func(obj *unstructured.Unstructured) Verdict {
		result := Verdict{Done: true}
		for _, check := range checks {
			verdict := check(obj)
			if verdict.Failed {
				return verdict
			}
			if !verdict.Done && result.Done {
				result = verdict
			}
		}
		return result
	}
}

// DeploymentReady is done when every replica of a Deployment runs the current
// template and is available. It has failed when the Deployment has given up.
func DeploymentReady() Check {
	return func(obj *unstructured.Unstructured) Verdict {
		if obj == nil {
			return Verdict{Message: "does not exist yet"}
		}
		if c, ok := conditionOf(obj, "Progressing"); ok && c["reason"] == "ProgressDeadlineExceeded" {
			return Verdict{Failed: true, Message: describe(c)}
		}
		want := count(obj, 1, "spec", "replicas")
		updated := count(obj, 0, "status", "updatedReplicas")
		available := count(obj, 0, "status", "availableReplicas")
		total := count(obj, 0, "status", "replicas")
		switch {
		case count(obj, 0, "status", "observedGeneration") < obj.GetGeneration():
			return Verdict{Message: "the deployment controller has not seen the last change yet"}
		case updated < want:
			return Verdict{Message: fmt.Sprintf("%d of %d replicas are updated%s", updated, want, why(obj))}
		case total > updated:
			return Verdict{Message: fmt.Sprintf("%d old replicas are still running", total-updated)}
		case available < want:
			return Verdict{Message: fmt.Sprintf("%d of %d replicas are available%s", available, want, why(obj))}
		}
		return Verdict{Done: true}
	}
}

// why returns what a Deployment says about replicas that cannot be made.
func why(deployment *unstructured.Unstructured) string {
	if c, ok := conditionOf(deployment, "ReplicaFailure"); ok && c["status"] == conditionTrue {
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
