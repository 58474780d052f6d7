package finding

import "fmt"

// Kind says what an Error is about.
type Kind string

// The kinds of an Error.
const (
	// Blocked means that something has to change first, such as a conflicting request.
	Blocked Kind = "Blocked"
	// NotFound means that there is no such object.
	NotFound Kind = "NotFound"
	// Invalid means that the request cannot be fulfilled, or matches more than one
	// object.
	Invalid Kind = "Invalid"
)

// Error is a final decision: nothing was written, and trying again does not help.
type Error struct {
	Kind Kind
	// Problem is one sentence, in lower case and without a period.
	Problem string
	// Try is the advice for the user; it may be empty.
	Try string
}

// Blockedf returns an Error about what has to change first.
func Blockedf(try, format string, args ...any) *Error {
	return &Error{Kind: Blocked, Problem: fmt.Sprintf(format, args...), Try: try}
}

// NotFoundf returns an Error about what does not exist.
func NotFoundf(try, format string, args ...any) *Error {
	return &Error{Kind: NotFound, Problem: fmt.Sprintf(format, args...), Try: try}
}

// Invalidf returns an Error about an invalid request.
func Invalidf(format string, args ...any) *Error {
	return &Error{Kind: Invalid, Problem: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.Problem }

// Hint returns what the user can do.
func (e *Error) Hint() string { return e.Try }
