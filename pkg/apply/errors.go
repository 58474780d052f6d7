package apply

import (
	"fmt"
	"strings"
)

// TerminatingError says that an object cannot be applied because it is being
// deleted. It can be applied again once it is gone.
type TerminatingError struct {
	// Object is the object that is being deleted.
	Object Ref
	// Finalizers are the finalizers that block its deletion.
	Finalizers []string
}

// Error implements error.
func (e *TerminatingError) Error() string {
	if len(e.Finalizers) == 0 {
		return fmt.Sprintf("%s is being deleted: try again when it is gone", e.Object)
	}
	return fmt.Sprintf("%s is being deleted and waits for its finalizers (%s): try again when it is gone",
		e.Object, strings.Join(e.Finalizers, ", "))
}

// WaitError says which objects did not reach the wanted state and why not.
type WaitError struct {
	// Unmet are the objects, in the order in which they were given.
	Unmet []Unmet
	// Cause is why the wait ended: the context's error, or ErrFailed.
	Cause error
}

// Unmet is one object that did not reach the wanted state.
type Unmet struct {
	// Object names it.
	Object Ref
	// Message is the condition or the error that kept it from the wanted state.
	Message string
	// Failed says that waiting longer would not have helped.
	Failed bool
}

// Error implements error.
func (e *WaitError) Error() string {
	parts := make([]string, len(e.Unmet))
	for i, unmet := range e.Unmet {
		parts[i] = fmt.Sprintf("%s: %s", unmet.Object, unmet.Message)
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the cause, so that a timeout can be distinguished from a failure.
func (e *WaitError) Unwrap() error { return e.Cause }
