package policy

import (
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// AnyCluster names the policy of every cluster that publishes its keys to the
// hub and has no policy of its own.
const AnyCluster = "*"

// The life of an issued token.
const (
	// DefaultExpiration is the requested lifetime of a rule that names no other.
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
	Allow []v1alpha1.Rule
	// Expiration of issued tokens, for rules that say none; 0 is DefaultExpiration.
	Expiration time.Duration
	// Bound are patterns of the namespaces of the hub that Allow may lead to; empty
	// is no further bound.
	Bound []string
	// Deny is absolute, and overrides Allow, and so is AlwaysDenied.
	Deny []v1alpha1.Denial
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

// Same maps to the same namespace and name as on the managed cluster.
func Same() v1alpha1.Mapping { return v1alpha1.Mapping{Namespace: "{namespace}", Name: "{name}"} }

// AlwaysDenied are the namespaces of the hub that no configuration opens: what
// runs there could give itself every right.
func AlwaysDenied() []v1alpha1.Denial {
	return []v1alpha1.Denial{{TargetNamespaces: []string{"kube-*", names.OperatorNamespace + "*"}}}
}

// OpenRule is the rule of a file without a policy: the same namespace and name for all
// clusters.
func OpenRule() v1alpha1.Rule { return v1alpha1.Rule{MapTo: Same()} }
