package subject

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// Defaults of a configuration that says nothing else.
const (
	DefaultMaxAge = time.Hour
	DefaultSkew   = 10 * time.Second
)

// Rules are the requirements for a cluster's tokens in addition to a good signature.
// The zero value accepts no token at all, because it has no audience. A Rules that was
// passed to a Verifier must not change.
type Rules struct {
	// Audiences are ours: one of them must be in a token's "aud".
	Audiences []string
	// MaxAge limits how long after its "iat" a token counts, regardless of its "exp"
	// says; 0 is no limit.
	MaxAge time.Duration
	// Skew is how far a cluster's clock may be ahead of ours in "nbf" and "iat".
	Skew time.Duration
	// RequirePod takes only tokens that are bound to a Pod.
	RequirePod bool
	// Legacy also takes Secrets' tokens, with flat claims. They have no
	// audience and never end; an audience or an end that one has all the same
	// is checked.
	Legacy bool
	// Open takes tokens as a file without a policy has them taken: flat and nested claims, and no
	// audience unless Audiences are set.
	Open bool
}

// Step is one check of a token, for explanations.
type Step struct {
	// Name is the name of the check, such as "signature".
	Name string
	// Detail is the finding; empty when the check failed or found nothing worth
	// reporting. It never holds a token or a part of one.
	Detail string
	// Denial is the reason of the denial, nil when the check was passed.
	Denial *denial.Error
}
