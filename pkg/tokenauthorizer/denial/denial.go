package denial

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a request was refused: a stable snake_case word that is safe in
// metrics and logs.
type Reason string

// Reasons of class Unauthenticated: the request carries no usable credential,
// or one that proves nothing.
const (
	MissingToken   Reason = "missing_token"
	Malformed      Reason = "malformed"
	UnknownIssuer  Reason = "unknown_issuer"
	UnknownKey     Reason = "unknown_key"
	AmbiguousKey   Reason = "ambiguous_key"
	BadSignature   Reason = "bad_signature"
	Expired        Reason = "expired"
	NotYetValid    Reason = "not_yet_valid"
	TooOld         Reason = "too_old"
	WrongAudience  Reason = "wrong_audience"
	ClaimsMismatch Reason = "claims_mismatch"
	LegacyToken    Reason = "legacy_token"
	Revoked        Reason = "revoked"
)

// Reasons of class Forbidden: the identity is proven and not allowed to do this.
const (
	NotBound      Reason = "not_bound"
	NotAllowed    Reason = "not_allowed"
	TargetDenied  Reason = "target_denied"
	TargetMissing Reason = "target_missing"
)

// RateLimited is the one reason of class Limited.
const RateLimited Reason = "rate_limited"

// Reasons of class Unavailable: the authorizer could not find out, and the
// credential may be good.
const (
	KeysUnavailable   Reason = "keys_unavailable"
	ReviewUnavailable Reason = "review_unavailable"
	HubUnavailable    Reason = "hub_unavailable"
	HubForbidden      Reason = "hub_forbidden"
	Deadline          Reason = "deadline"
)

// Class is the meaning of a reason for the caller.
type Class int

// The classes, each with one HTTP status.
const (
	Unauthenticated Class = iota // 401: get another credential.
	Forbidden                    // 403: another credential of the same identity does not help.
	Limited                      // 429: come back later.
	Unavailable                  // 503: nothing is known about the credential; try again.
)

// Class returns the class of r. An unknown reason is Unavailable, so that a
// forgotten one never makes a client assume that its credential is bad.
func (r Reason) Class() Class {
	switch r {
	case MissingToken, Malformed, UnknownIssuer, UnknownKey, AmbiguousKey, BadSignature, Expired,
		NotYetValid, TooOld, WrongAudience, ClaimsMismatch, LegacyToken, Revoked:
		return Unauthenticated
	case NotBound, NotAllowed, TargetDenied, TargetMissing:
		return Forbidden
	case RateLimited:
		return Limited
	default:
		return Unavailable
	}
}

// Error is the error with which every stage of the authorizer refuses. Its
// text is for operators (logs, explain); a client learns the class only.
type Error struct {
	Reason Reason
	// Detail is one plain sentence: what was found and what was expected. It
	// never holds a token or a part of one.
	Detail string
	// RetryAfter is how long the caller should wait, 0 when that is not known.
	RetryAfter time.Duration
	// Err is the cause, if another error was.
	Err error
}

// New returns an Error for r with a formatted detail. A %w in format sets
// the cause.
func New(r Reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: r, Detail: err.Error(), Err: errors.Unwrap(err)}
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Detail }

func (e *Error) Unwrap() error { return e.Err }

// Of returns the Error in err's chain. An error without one becomes
// hub_unavailable: what was not foreseen is ours to fix, not the caller's.
func Of(err error) *Error {
	if denied, ok := errors.AsType[*Error](err); ok {
		return denied
	}
	return &Error{Reason: HubUnavailable, Detail: err.Error(), Err: err}
}
