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
	// Invalid means that what was asked for cannot be done, or fits more than one object.
	Invalid Kind = "Invalid"
)

// Error is a final decision: nothing was written, and trying again does not help.
type Error struct {
	Kind Kind
	// Problem is one sentence, in lower case and without a period.
	Problem string
	// Try is what the user can do; it may be empty.
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

// Invalidf returns an Error about what was asked for.
func Invalidf(format string, args ...any) *Error {
	return &Error{Kind: Invalid, Problem: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.Problem }

// Hint returns what the user can do.
func (e *Error) Hint() string { return e.Try }
