package policy

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AnyCluster names the policy of every cluster that publishes its keys to the
// hub and has no policy of its own.
const AnyCluster = "*"

// The life of an issued token.
const (
	// DefaultExpiration is what a rule asks for that names no other.
	DefaultExpiration = time.Hour
	// MinExpiration is the least that the API server grants (TokenRequest).
	MinExpiration = 10 * time.Minute
)

// Spec is the policy of one cluster as it was written. Compile makes it usable.
type Spec struct {
	// Cluster is the configured name of the cluster, or AnyCluster.
	Cluster string
	// Path is where the policy is, for findings: "clusters[0]", or the object.
	Path string
	// Audiences are the cluster's own. Compile leaves them to the verifier of
	// tokens; Lint looks at them.
	Audiences []string
	// Allow is tried in order; the first rule that matches decides.
	Allow []Rule
	// Bound are patterns of the namespaces of the hub that Allow may lead to; empty
	// is no further bound.
	Bound []string
	// Deny is absolute, and overrides Allow, and so is AlwaysDenied.
	Deny []Deny
	// Self is the authorizer's own ServiceAccount, which is never a target.
	Self Account
	// Open is set for a file without any policy: Allow is OpenRule,
	// and what it leaves open is known and warned about.
	Open bool
}

// Account is a ServiceAccount of the hub.
type Account struct {
	Namespace, Name string
}

// Rule allows some ServiceAccounts of a cluster to become a ServiceAccount of
// the hub. Patterns are names in which "*" stands for any characters.
type Rule struct {
	// Namespaces and ServiceAccounts are patterns; empty is everything.
	Namespaces, ServiceAccounts []string
	// Audiences narrow the rule to tokens made for one of them; empty is every
	// token that was taken.
	Audiences []string
	// RequirePod refuses a token that is not bound to a Pod.
	RequirePod bool
	// MapTo says which account of the hub.
	MapTo Mapping
	// Target bounds the account and shapes its token.
	Target TargetSpec
}

// Mapping is how a rule finds the account of the hub: two templates in which
// {cluster}, {namespace} and {name} stand for where the token is from. Templates
// without any of them are one fixed account.
type Mapping struct {
	Namespace, Name string
}

// Same maps to the same namespace and name as on the managed cluster.
func Same() Mapping { return Mapping{Namespace: "{namespace}", Name: "{name}"} }

// TargetSpec bounds the account of the hub and shapes its token.
type TargetSpec struct {
	// Namespaces are patterns of which the target's namespace must match one;
	// empty is no further bound.
	Namespaces []string
	// Audiences of the issued token; empty is the hub API server's own.
	Audiences []string
	// Expiration of the issued token; zero is DefaultExpiration.
	Expiration time.Duration
}

// Deny is accounts of the hub that no rule reaches: those that match both
// lists. An empty list matches everything.
type Deny struct {
	TargetNamespaces, TargetServiceAccounts []string
}

// AlwaysDenied are the namespaces of the hub that no configuration opens: what
// runs there could give itself every right.
func AlwaysDenied() []Deny {
	return []Deny{{TargetNamespaces: []string{"kube-*", names.OperatorNamespace + "*"}}}
}

// OpenRule is what a file without a policy means: the same namespace and name for
// all clusters.
func OpenRule(expiration time.Duration) Rule {
	return Rule{MapTo: Same(), Target: TargetSpec{Expiration: expiration}}
}
