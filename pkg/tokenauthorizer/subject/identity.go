package subject

import "time"

// Identity is a workload of a managed cluster, as its token proves it.
type Identity struct {
	// Cluster is the configured name of the cluster whose key verified the token.
	Cluster string
	// Account is the ServiceAccount that the token stands for.
	Account Account
	// Token describes the token itself.
	Token Token
	// Bound is the token's bound object; the managed cluster vouches for it.
	Bound Binding
}

// Account is a ServiceAccount of a managed cluster.
type Account struct {
	Namespace, Name, UID string
}

// Token describes a subject token, but is never the token.
type Token struct {
	// Issuer, KeyID and ID are its "iss", "kid" and "jti"; ID may be empty.
	Issuer, KeyID, ID string
	// Audiences is its "aud", empty for a legacy token.
	Audiences []string
	// IssuedAt is its "iat", zero for a legacy token without one.
	IssuedAt time.Time
	// NotAfter is when we stop taking it: the earliest of "exp", "warnafter"
	// and "iat" plus the maximum age; zero for a legacy token that never ends.
	NotAfter time.Time
	// Legacy is set for a token with flat claims (a Secret's token).
	Legacy bool
}

// Binding is the object whose deletion ends a token (KEP-1205, KEP-4193). Of
// Pod, Secret and Node at most one is the binding; a Node next to a Pod is
// where that Pod runs.
type Binding struct {
	Pod, Secret, Node Object
}

// Object is a bound object; empty when there is none.
type Object struct {
	Name, UID string
}
