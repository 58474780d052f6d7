package finding

import (
	"context"
	"fmt"
)

// Status is how a check ended.
type Status string

// The ways in which a check ends.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
	// Unknown is of a check for which the caller lacks a permission, or had no time.
	Unknown Status = "unknown"
	Skipped Status = "skipped"
)

// Outcome is how a check ended.
type Outcome struct {
	Status  Status `json:"status"`
	Message string `json:"message,omitempty"`
	// Try is the advice.
	Try string `json:"try,omitempty"`
	// Cause is the error of a check that could not be made, or not be completed. The caller that
	// prints the outcome explains it, after Message if there is one.
	Cause error `json:"-"`
}

// Step is one check.
type Step struct {
	Name string
	// Needed steps end the report unless they succeed: those behind them are
	// skipped.
	Needed bool
	Run    func(context.Context) Outcome
}

// Good reports that a check succeeded.
func Good(format string, args ...any) Outcome {
	return Outcome{Status: OK, Message: fmt.Sprintf(format, args...)}
}

// Bad reports that a check failed, and what to try.
func Bad(try, format string, args ...any) Outcome {
	return Outcome{Status: Failed, Message: fmt.Sprintf(format, args...), Try: try}
}

// Caution reports what may be meant, and what to try if not.
func Caution(try, format string, args ...any) Outcome {
	return Outcome{Status: Warning, Message: fmt.Sprintf(format, args...), Try: try}
}

// Skip reports why a check was not made.
func Skip(format string, args ...any) Outcome {
	return Outcome{Status: Skipped, Message: fmt.Sprintf(format, args...)}
}

// Broken reports an error of looking.
func Broken(err error) Outcome { return Outcome{Status: Failed, Cause: err} }
