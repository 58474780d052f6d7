package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// conflict says that a cluster has keys of others.
func conflict(c *Cluster, shared []jwks.SharedKeyError) policy.Finding {
	var others []string
	for _, s := range shared {
		for _, other := range s.Clusters {
			if other != c.Name() {
				others = append(others, fmt.Sprintf("%q (%s)", other, s.Thumbprint))
			}
		}
	}
	return policy.Finding{
		Severity: policy.Error, Path: c.Spec.Path + ".keys",
		Message: fmt.Sprintf("the key %s is also a key of cluster %s, so a token of one is a token of the other",
			shared[0].KeyID, strings.Join(slices.Compact(others), ", ")),
		Fix: "give each cluster a signing key of its own, or remove one of the two",
	}
}
