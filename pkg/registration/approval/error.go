package approval

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

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
