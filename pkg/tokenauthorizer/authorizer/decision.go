package authorizer

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// Request is the request of one caller, in any protocol.
type Request struct {
	// Token is the subject token, without its scheme.
	Token string
	// Origin is for the audit log alone; nothing in it is proven.
	Origin Origin
}

// Origin is where a request came from, as the proxy reports it.
type Origin struct {
	// RequestID joins our audit line with the proxy's access log.
	RequestID string
	Method    string
	// Path is without the query, which may hold secrets.
	Path string
	// Principal is the peer that the proxy authenticated, if it did.
	Principal string
}

// Decision is a request that was allowed. One that was not is an error with a
// denial.Error in its chain.
type Decision struct {
	// Identity is who asked.
	Identity subject.Identity
	// Grant is the rule that allowed it, and its target.
	Grant policy.Grant
	// Token is the token that the request continues with.
	Token mint.Token
	// Cached is set when the token was minted for an earlier request.
	Cached bool
}
