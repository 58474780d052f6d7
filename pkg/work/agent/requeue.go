package agent

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

const (
	// firstRetry and mostRetry bound the back-off of works that cannot be applied.
	firstRetry = 250 * time.Millisecond
	mostRetry  = 4 * time.Minute
	// cacheDelay is how soon a work is reconciled again if the cached copy is older than
	// the agent's last write.
	cacheDelay = 100 * time.Millisecond
	// denialInterval is how soon an executor is checked again that was not allowed to
	// do what its work says.
	denialInterval = time.Minute
	// conflictInterval is how soon a server-side apply is tried again that another
	// manager's fields prevent, if that does not change the object before.
	conflictInterval = 4 * time.Minute
)

// requeue decides when a work is reconciled again. The phases of a pass report every reason
// to it, and the earliest one counts. Without a reason, the work waits for an event.
type requeue struct {
	// after is the delay of the earliest reason; zero if there is none.
	after time.Duration
	// unfinished is true if a reason is more than a status to read.
	unfinished bool
	// rejected is the longest back-off after what the API server rejected; zero if it
	// rejected nothing.
	rejected time.Duration
}

// recheck reports that a status or a permission must be read again after at most d.
func (q *requeue) recheck(d time.Duration) {
	d = max(d, time.Millisecond)
	if q.after == 0 || d < q.after {
		q.after = d
	}
}

// retry reports that something is left to do after at most d.
func (q *requeue) retry(d time.Duration) {
	q.unfinished = true
	q.recheck(d)
}

// reject reports that the API server rejected a request, which is tried again after a
// back-off of at most d. A condition says why; an error would be logged each time.
func (q *requeue) reject(d time.Duration) {
	if q.rejected == 0 || d < q.rejected {
		q.rejected = d
	}
}

// fail reports why a manifest is not applied. It returns the error if only the back-off of
// the controller can say when to try again.
func (q *requeue) fail(err error) error {
	switch {
	case errors.Is(err, executor.ErrNotAllowed):
		q.retry(denialInterval)
		return nil
	case errors.Is(err, strategy.ErrConflict):
		q.retry(conflictInterval)
		return nil
	case apierrors.IsForbidden(err):
		q.reject(denialInterval)
		return nil
	case permanent(err):
		q.reject(mostRetry)
		return nil
	case apierrors.IsConflict(err):
		return errors.New(err.Error()) // It backs off, unlike a conflict of the agent's own records.
	}
	return err
}

// permanent reports whether the API server has answered that the object cannot be as its
// manifest says, or that it does not know the kind. The condition of the manifest has the
// answer.
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err)
}

// backOff turns what the API server rejected in this pass into a reason, and returns in how
// many passes in a row it did. denials is that number before this pass.
func (q *requeue) backOff(denials int, work string) int {
	if q.rejected == 0 {
		return 0
	}
	denials++
	q.retry(credential.Backoff{First: firstRetry, Most: q.rejected}.Delay(denials, work))
	return denials
}

// result returns when the controller reconciles the work again, after a pass that ended with
// err. After a conflict, the cache is behind another writer.
func (q *requeue) result(err error) (ctrl.Result, error) {
	switch {
	case isConflict(err):
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: q.after}, nil
}

// isConflict reports whether an error, or each that it joins, is a conflict.
func isConflict(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !isConflict(err) })
	}
	return apierrors.IsConflict(err)
}
