package status

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// IgnoreFieldsError is why the fields that an update strategy ignores could not be
// determined. The condition Applied has a reason of its own for it.
type IgnoreFieldsError struct{ Err error }

// Error returns the message of the cause.
func (e *IgnoreFieldsError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *IgnoreFieldsError) Unwrap() error { return e.Err }

// Applied returns the condition Applied of a manifest; err is why it was not applied,
// nil if it was. See docs/reference/wire-contract.md#work-conditions.
func Applied(err error, generation int64) metav1.Condition {
	condition := metav1.Condition{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	var ignoreFields *IgnoreFieldsError
	switch {
	case err == nil:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = workv1.AppliedManifestComplete, names.MessageManifestApplied
	case errors.As(err, &ignoreFields):
		condition.Reason = workv1.AppliedManifestSSAIgnoreFieldError
		condition.Message = fmt.Sprintf("Failed to process ignoreFields: %v", err)
	default:
		condition.Reason = workv1.AppliedManifestFailed
		condition.Message = fmt.Sprintf("Failed to apply manifest: %v", err)
	}
	return bounded(condition)
}

// Remark returns a condition whose message also says remark, unless that is empty.
func Remark(condition metav1.Condition, remark string) metav1.Condition {
	if remark != "" {
		condition.Message += "; " + remark
	}
	return bounded(condition)
}

// Available returns the condition Available of the manifest meta; err is why its object
// could not be read, nil if it was.
// See docs/reference/wire-contract.md#work-conditions.
func Available(meta workv1.ManifestResourceMeta, err error) metav1.Condition {
	condition := metav1.Condition{Type: workv1.ManifestAvailable, Status: metav1.ConditionUnknown}
	switch {
	case meta.Resource == "" || meta.Version == "" || meta.Name == "":
		condition.Reason, condition.Message = names.ReasonResourceMetaIncomplete, names.MessageResourceMetaIncomplete
	case apierrors.IsNotFound(err):
		condition.Status = metav1.ConditionFalse
		condition.Reason, condition.Message = names.ReasonResourceNotAvailable, names.MessageResourceNotAvailable
	case err != nil:
		condition.Reason, condition.Message = names.ReasonResourceFetchFailed, fmt.Sprintf("Failed to fetch resource: %v", err)
	default:
		condition.Status = metav1.ConditionTrue
		condition.Reason, condition.Message = names.ReasonResourceAvailable, names.MessageResourceAvailable
	}
	return bounded(condition)
}

// Deleting returns the condition of a work that is being deleted.
func Deleting(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: names.ReasonWorkDeleting, Message: names.MessageWorkDeleting,
	}
}

// maxMessage is how many bytes of a message are reported: the API allows 32768
// characters.
const maxMessage = 32000

// bounded cuts a message that would have the API server reject the whole status.
func bounded(condition metav1.Condition) metav1.Condition {
	condition.Message = excerpt.Of(condition.Message, maxMessage)
	return condition
}
