package local

import "errors"

// Problem is an error that a user can do something about.
type Problem struct {
	Err error
	// Todo is what to do, in the imperative.
	Todo string
}

// Error implements error.
func (p *Problem) Error() string { return p.Err.Error() }

// Unwrap returns the technical error.
func (p *Problem) Unwrap() error { return p.Err }

// Hint is what to do next.
func (p *Problem) Hint() string { return p.Todo }

// Errors that callers tell apart.
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
