package approval

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// Kind says what an Error is about.
type Kind string

// The kinds of an Error.
const (
	// Blocked means that something has to change before the cluster can be
	// accepted, such as a conflicting request.
	Blocked Kind = "Blocked"
	// NotFound means that the hub has no such cluster or request.
	NotFound Kind = "NotFound"
	// Ambiguous means that the choice fits more than one request.
	Ambiguous Kind = "Ambiguous"
)

// Error is a final decision: nothing was written, and trying again does not help.
type Error struct {
	Kind Kind
	// Problem is one sentence, in lower case and without a period.
	Problem string
	// Try is what the administrator can do; it may be empty.
	Try string
}

// Error implements error.
func (e *Error) Error() string { return e.Problem }

// Hint returns what the administrator can do.
func (e *Error) Hint() string { return e.Try }

// SuspendedError means that a cluster that is to register in another way was denied
// for it and could not be accepted again.
type SuspendedError struct {
	Cluster string
	Cause   error
}

// Error implements error.
func (e *SuspendedError) Error() string {
	return fmt.Sprintf("the hub denies cluster %s until it is accepted with another way to register: %v", e.Cluster, e.Cause)
}

// Hint returns what the administrator can do.
func (e *SuspendedError) Hint() string { return "run the same command again" }

// Unwrap returns the cause.
func (e *SuspendedError) Unwrap() error { return e.Cause }

// AwaitError says what a cluster still lacked when the Approver stopped.
type AwaitError struct {
	Awaited Awaited
	// Waiting says it in words.
	Waiting string
	// By is the driver that identifies the cluster; nil if it registers with a certificate.
	By driver.Identifier
	// Cause is the end of the context, or nil if the Approver was not to wait.
	Cause error
}

// Error implements error.
func (e *AwaitError) Error() string { return "waiting for " + e.Waiting }

// Unwrap returns the cause.
func (e *AwaitError) Unwrap() error { return e.Cause }
