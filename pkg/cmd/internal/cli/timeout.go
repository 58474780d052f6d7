package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Timeout is a flag value that takes a duration, or a bare number of seconds as
// clusteradm does.
type Timeout time.Duration

var _ pflag.Value = (*Timeout)(nil)

// String implements pflag.Value.
func (t *Timeout) String() string { return time.Duration(*t).String() }

// Type implements pflag.Value.
func (t *Timeout) Type() string { return "duration" }

// Set implements pflag.Value.
func (t *Timeout) Set(s string) error {
	d, err := parseDuration(s)
	if err == nil && d < 0 {
		err = errNoDuration
	}
	if err != nil {
		return err
	}
	*t = Timeout(d)
	return nil
}

// AddTo registers --timeout, whose default is t.
func (t *Timeout) AddTo(cmd *cobra.Command) {
	cmd.Flags().Var(t, "timeout", "Maximum duration of the command; 0 means no limit")
}

// Context returns ctx bounded by t; 0 is no bound.
func (t *Timeout) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if *t == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(*t))
}

// Wait is the pair of flags of every command that can wait.
type Wait struct {
	Enabled bool
	Timeout Timeout
}

// AddTo registers --wait and --timeout.
func (w *Wait) AddTo(cmd *cobra.Command, usage string) {
	if w.Timeout == 0 {
		w.Timeout = Timeout(5 * time.Minute)
	}
	cmd.Flags().BoolVar(&w.Enabled, "wait", w.Enabled, usage)
	w.Timeout.AddTo(cmd)
}

// Context returns ctx bounded by the timeout.
func (w *Wait) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return w.Timeout.Context(ctx)
}

// TimedOut explains err when it came from the timeout: what was waited for and
// what stood in the way. Other errors are returned as they are.
func (w *Wait) TimedOut(err error, waitingFor, try string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Explained{
		Problem: fmt.Sprintf("gave up after %s: waiting for %s", time.Duration(w.Timeout), waitingFor),
		Try:     try, Code: CodeTimeout,
	}
}
