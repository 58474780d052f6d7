package await

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience bounds the waits of tests. It is far above what anything takes, because the
// machine may be busy: how long something takes is never what a test asserts.
const Patience = 4 * time.Minute

// interval is the time between two looks.
const interval = 20 * time.Millisecond

// Condition waits for up to patience until done returns true. An error of done,
// and the end of patience, fail the test, with what last returns.
func Condition(tb testing.TB, patience time.Duration, what string, done wait.ConditionWithContextFunc, last ...func() any) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(tb.Context(), interval, patience, true, done)
	if err == nil {
		return
	}
	for _, l := range last {
		tb.Logf("last seen: %+v", l())
	}
	tb.Fatalf("wait until %s: %v", what, err)
}

// Success waits for up to patience until try returns no error. The end of
// patience fails the test, with the last error.
func Success(tb testing.TB, patience time.Duration, what string, try func(context.Context) error) {
	tb.Helper()
	var last error
	Condition(tb, patience, what, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	}, func() any { return last })
}

// Completion waits for up to patience until missing returns "" instead of the missing
// state. After that it fails the test with the missing state.
func Completion(tb testing.TB, patience time.Duration, missing func(context.Context) string) {
	tb.Helper()
	Success(tb, patience, "nothing is missing", func(ctx context.Context) error {
		if what := missing(ctx); what != "" {
			return errors.New(what)
		}
		return nil
	})
}
