package policy

import "time"

// Grant is a rule's grant to an identity.
type Grant struct {
	// Rule names the rule that matched, as in "cluster1/allow[0]": for audit
	// lines and explanations.
	Rule string
	// Target is the ServiceAccount that the identity becomes.
	Target Target
}

// Target is a ServiceAccount of the hub and the token to issue for it.
type Target struct {
	Namespace, Name string
	// Audiences of the issued token; empty means the hub API server's own.
	Audiences []string
	// Expiration is the requested lifetime of the issued token.
	Expiration time.Duration
}
