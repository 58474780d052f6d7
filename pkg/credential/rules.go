package credential

import (
	"errors"
	"fmt"
	"time"
)

// Problems of a stored credential at any time. All but the last two make it unusable.
// Errors about a credential wrap one of them; an error that wraps none counts as
// ErrMalformed.
var (
	// ErrMissing says that there is no credential at all.
	ErrMissing = errors.New("there is no credential")
	// ErrMalformed says that what is stored cannot be read or does not fit together.
	ErrMalformed = errors.New("the credential is malformed")
	// ErrWrongIdentity: the credential is for another identity.
	ErrWrongIdentity = errors.New("the credential is for another identity")
	// ErrSignerRetired says that verifiers no longer know the key that signed it.
	ErrSignerRetired = errors.New("the credential is signed with a key that is no longer published")
	// ErrServersChanged: it is stored for other servers than it is needed for, and is
	// valid for those.
	ErrServersChanged = errors.New("the credential is stored for other servers")
	// ErrRefreshRequested says that a user wants another credential. This one works.
	ErrRefreshRequested = errors.New("a new credential was requested")
)

// Reason says in one word why a new credential is needed.
type Reason string

// The reasons, in the order of the checks.
const (
	Missing          Reason = "Missing"
	WrongIdentity    Reason = "WrongIdentity"
	SignerRetired    Reason = "SignerRetired"
	Malformed        Reason = "Malformed"
	Expired          Reason = "Expired"
	ServersChanged   Reason = "ServersChanged"
	RefreshRequested Reason = "RefreshRequested"
	NearExpiry       Reason = "NearExpiry"
)

// Urgency orders credential needs when not all can be met at once: the higher one is
// first.
type Urgency int

// The urgencies, the least first.
const (
	// Routine needs harm nothing until the credential expires.
	Routine Urgency = iota
	// Degraded credentials work for some servers only.
	Degraded
	// Broken credentials do not work.
	Broken
)

// Urgency is how urgent a need for this reason is.
func (r Reason) Urgency() Urgency {
	switch r {
	case NearExpiry, RefreshRequested:
		return Routine
	case ServersChanged:
		return Degraded
	default:
		return Broken
	}
}

// Need is why a new credential is needed.
type Need struct {
	Reason Reason
	// Message is a message for users.
	Message string
}

// Facts is all that the rules look at.
type Facts struct {
	// Problem is the error of the inspection of the stored credential, nil if it can be
	// used.
	Problem error
	// Validity is the validity of the credential, if no problem makes it useless.
	Validity Validity
	// RenewAt is when it must be renewed, if no problem makes it useless.
	RenewAt time.Time
}

// Rule looks at one thing and says whether, because of it, a new credential is
// needed at now.
type Rule func(f Facts, now time.Time) (Need, bool)

// Chain is a list of rules, the first that applies wins.
type Chain []Rule

// Evaluate returns why a new credential is needed at now, or false if it is not.
func (c Chain) Evaluate(f Facts, now time.Time) (Need, bool) {
	for _, rule := range c {
		if need, ok := rule(f, now); ok {
			return need, true
		}
	}
	return Need{}, false
}

// Unusable is the chain of what makes a credential useless now: nothing can be
// done with it, not even renewing it.
func Unusable() Chain { return Chain{missing, wrongIdentity, signerRetired, malformed, expired} }

// Due is the chain of the reasons for a new credential: the old one is unusable or not
// valid for every server, a user requested a new one, or it expires soon.
func Due() Chain { return append(Unusable(), serversChanged, refreshRequested, nearExpiry) }

func missing(f Facts, _ time.Time) (Need, bool) {
	return problem(f, ErrMissing, Missing)
}

func wrongIdentity(f Facts, _ time.Time) (Need, bool) {
	return problem(f, ErrWrongIdentity, WrongIdentity)
}

func signerRetired(f Facts, _ time.Time) (Need, bool) {
	return problem(f, ErrSignerRetired, SignerRetired)
}

// malformed runs after the others: every other problem that makes a credential useless
// is malformed.
func malformed(f Facts, _ time.Time) (Need, bool) {
	if errors.Is(f.Problem, ErrServersChanged) || errors.Is(f.Problem, ErrRefreshRequested) {
		return Need{}, false
	}
	return problem(f, f.Problem, Malformed)
}

func serversChanged(f Facts, _ time.Time) (Need, bool) {
	return problem(f, ErrServersChanged, ServersChanged)
}

func refreshRequested(f Facts, _ time.Time) (Need, bool) {
	return problem(f, ErrRefreshRequested, RefreshRequested)
}

func problem(f Facts, kind error, reason Reason) (Need, bool) {
	if f.Problem == nil || !errors.Is(f.Problem, kind) {
		return Need{}, false
	}
	return Need{Reason: reason, Message: f.Problem.Error()}, true
}

func expired(f Facts, now time.Time) (Need, bool) {
	if !f.Validity.Expired(now) {
		return Need{}, false
	}
	return Need{Reason: Expired, Message: "the credential expired at " + Timestamp(f.Validity.NotAfter)}, true
}

func nearExpiry(f Facts, now time.Time) (Need, bool) {
	if f.Validity.Unlimited || now.Before(f.RenewAt) {
		return Need{}, false
	}
	return Need{Reason: NearExpiry, Message: fmt.Sprintf("the credential expires at %s and was due for renewal at %s", Timestamp(f.Validity.NotAfter), Timestamp(f.RenewAt))}, true
}
