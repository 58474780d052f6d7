package local

import "errors"

// HintedError is an error that a user can do something about.
type HintedError struct {
	Err error
	// Todo is the advice, in the imperative.
	Todo string
}

// Error implements error.
func (e *HintedError) Error() string { return e.Err.Error() }

// Unwrap returns the technical error.
func (e *HintedError) Unwrap() error { return e.Err }

// Hint returns the advice.
func (e *HintedError) Hint() string { return e.Todo }

// Errors that callers distinguish.
var (
	// ErrNoClusters says that a directory holds no local clusters.
	ErrNoClusters = errors.New("there are no local clusters")
	// ErrUnknownCluster says that there is no cluster of a name.
	ErrUnknownCluster = errors.New("there is no such local cluster")
	// ErrBusy says that another Up or Down is at work.
	ErrBusy = errors.New("another command is starting or stopping these local clusters")
	// ErrNotRunning says that a cluster has no supervisor.
	ErrNotRunning = errors.New("the local cluster does not run")
)
