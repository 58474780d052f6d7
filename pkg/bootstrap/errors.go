package bootstrap

// Kind distinguishes the errors of this package.
type Kind string

// The kinds of errors.
const (
	// BadServer is a hub URL that cannot be one.
	BadServer Kind = "BadServer"
	// BadHash is a CA hash that cannot be read.
	BadHash Kind = "BadHash"
	// BadCA is a CA file without a certificate.
	BadCA Kind = "BadCA"
	// Unreachable is a hub that does not answer.
	Unreachable Kind = "Unreachable"
	// Untrusted is a hub whose certificate no given authority has signed.
	Untrusted Kind = "Untrusted"
	// Mismatch is a hub whose authority is not the pinned one.
	Mismatch Kind = "Mismatch"
	// WrongHost is a certificate for another address.
	WrongHost Kind = "WrongHost"
	// BadToken is something that is no token.
	BadToken Kind = "BadToken"
	// Expired is a token whose time is over.
	Expired Kind = "Expired"
	// Refused is a token that the hub does not accept.
	Refused Kind = "Refused"
	// Forbidden is a token without the permissions of a bootstrap token.
	Forbidden Kind = "Forbidden"
	// NotAHub is a server that does not serve the OCM API.
	NotAHub Kind = "NotAHub"
)

// Error describes a failure of the first contact and the next step.
type Error struct {
	Kind Kind
	// Problem is one sentence, lower case, without a period.
	Problem string
	// Try is the next step.
	Try string
	// Cause is the technical error behind it, if any.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Problem + ": " + e.Cause.Error()
	}
	return e.Problem
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Hint returns the next step.
func (e *Error) Hint() string { return e.Try }
