package mint

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Request asks for a token of the hub.
type Request struct {
	// Subject is the identity that was proven.
	Subject subject.Identity
	// Target is the target that a rule granted.
	Target policy.Target
	// Generation of the rules that granted it: a token minted under older
	// rules is never handed out.
	Generation uint64
}

// Token is an issued token (RFC 8693 §2.2.1). It must not be logged.
type Token struct {
	// Value is the token itself.
	Value string
	// ID is its "jti", which the hub's audit log shows as credential id.
	ID string
	// IssuedAt and Expires are the hub's values, not the requested ones.
	IssuedAt, Expires time.Time
}
