package agent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// TestRequeue: the earliest reason counts, and only a reason to apply the work again makes it
// unfinished.
func TestRequeue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		report     func(*requeue)
		after      time.Duration
		unfinished bool
	}{
		"no reason":                   {func(*requeue) {}, 0, false},
		"a status to read":            {func(q *requeue) { q.recheck(time.Minute) }, time.Minute, false},
		"the earlier one after it":    {func(q *requeue) { q.recheck(time.Minute); q.retry(time.Second) }, time.Second, true},
		"the earlier one before it":   {func(q *requeue) { q.recheck(time.Second); q.retry(time.Minute) }, time.Second, true},
		"a reason that is overdue":    {func(q *requeue) { q.recheck(-time.Second) }, time.Millisecond, false},
		"an executor without access":  {failWith(fmt.Errorf("apply: %w", executor.ErrNotAllowed)), denialInterval, true},
		"fields of another manager":   {failWith(fmt.Errorf("apply: %w", strategy.ErrConflict)), conflictInterval, true},
		"a back-off that is reported": {func(q *requeue) { q.reject(time.Millisecond); q.backOff(0, "app") }, time.Millisecond, true},
		"a back-off of the earlier rejection": {func(q *requeue) {
			q.reject(time.Millisecond)
			q.reject(time.Hour)
			q.backOff(20, "app")
		}, time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &requeue{}
			test.report(q)
			result, err := q.result(nil)
			if err != nil || result.RequeueAfter.Round(time.Millisecond) != test.after || q.unfinished != test.unfinished {
				t.Errorf("after %s, unfinished %v, error %v; want %s, %v", result.RequeueAfter, q.unfinished, err, test.after, test.unfinished)
			}
		})
	}
}

func failWith(err error) func(*requeue) {
	return func(q *requeue) { _ = q.fail(err) }
}

// TestRequeueErrors: an error backs off in the controller, unless a condition says what the
// API server rejected, or the cache is behind.
func TestRequeueErrors(t *testing.T) {
	t.Parallel()
	works := workv1.Resource("manifestworks")
	conflict := apierrors.NewConflict(works, "app", nil)
	q := &requeue{}
	for _, err := range []error{
		apierrors.NewForbidden(works, "app", nil), apierrors.NewBadRequest("no"), apierrors.NewNotFound(works, "app"),
	} {
		if q.fail(err) != nil || q.after != 0 {
			t.Errorf("%v is an error, or waits for %s before the pass ends", err, q.after)
		}
	}
	if q.rejected != denialInterval || q.backOff(3, "app") != 4 || q.after == 0 {
		t.Errorf("rejected %s, after %s", q.rejected, q.after)
	}
	if denials := (&requeue{}).backOff(3, "app"); denials != 0 {
		t.Errorf("%d denials in a row after a pass without one", denials)
	}
	if err := q.fail(conflict); err == nil || isConflict(err) {
		t.Errorf("a conflict about an object does not back off: %v", err)
	}
	other := errors.New("no answer")
	for name, test := range map[string]struct {
		err, want error
		after     time.Duration
	}{
		"a conflict":                {conflict, nil, cacheDelay},
		"conflicts only":            {errors.Join(conflict, errors.Join(conflict)), nil, cacheDelay},
		"a conflict and an error":   {errors.Join(conflict, other), other, 0},
		"an error wins over reason": {other, other, 0},
	} {
		result, err := q.result(test.err)
		if !errors.Is(err, test.want) || result.RequeueAfter != test.after {
			t.Errorf("%s: %v after %s", name, err, result.RequeueAfter)
		}
	}
}
