package ststoken

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Error is the error of a call to AWS that a token needs.
type Error struct {
	// Operation is the call that failed, such as AssumeRole; empty if no
	// credential was found to make one with.
	Operation string
	// Code is AWS's word for what is wrong, such as AccessDenied; empty if AWS
	// did not answer.
	Code string
	// Role is the ARN of the role that was to be assumed; empty for none.
	Role  string
	cause error
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Code == "AccessDenied" && e.Operation == "AssumeRole":
		return fmt.Sprintf("AWS denied this identity to assume %s; the role exists only after the hub accepted the cluster and granted its access, and its trust policy must name this identity's role and tags: %v", e.Role, e.cause)
	case e.Operation == "AssumeRoleWithWebIdentity":
		return fmt.Sprintf("AWS rejected the token of the ServiceAccount; check the role's trust policy, the cluster's OIDC provider and the role in its annotation: %v", e.cause)
	case e.Operation == "":
		return fmt.Sprintf("no AWS credentials found; annotate the service account with its IAM role, use EKS Pod Identity, or configure credentials: %v", e.cause)
	}
	return fmt.Sprintf("AWS call %s failed: %v", e.Operation, e.cause)
}

// Is reports a role that AWS does not let this identity assume as
// driver.ErrDenied: the hub makes the role when it accepts the cluster, and removes
// it with the acceptance.
func (e *Error) Is(target error) bool {
	return target == driver.ErrDenied && e.Operation == "AssumeRole" && e.Code == "AccessDenied"
}

// Unwrap returns the SDK's error.
func (e *Error) Unwrap() error { return e.cause }

func (s *Source) explain(err error) error {
	explained := &Error{Role: s.config.Role, cause: err}
	// The innermost call is the one that AWS refused.
	for inner := err; inner != nil; {
		operation, ok := errors.AsType[*smithy.OperationError](inner)
		if !ok {
			break
		}
		inner, explained.Operation = operation.Err, ""
		if operation.ServiceID == sts.ServiceID {
			explained.Operation = operation.OperationName // Others look for a credential on this machine.
		}
	}
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		explained.Code = answer.ErrorCode()
	}
	return explained
}
