package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// collision is a key that two clusters have.
type collision struct {
	key   jwk.Key
	other string
}

// shared finds one key under one issuer for two clusters, whose tokens cannot be
// distinguished. One issuer with different keys is fine.
func shared(clusters []Cluster, sets map[int]jwk.Set) map[int][]collision {
	type id struct{ issuer, thumbprint string }
	owners := map[id][]int{}
	each(clusters, sets, func(i int, issuer string, k jwk.Key) {
		at := id{issuer, k.Thumbprint}
		owners[at] = append(owners[at], i)
	})
	out := map[int][]collision{}
	each(clusters, sets, func(i int, issuer string, k jwk.Key) {
		for _, j := range owners[id{issuer, k.Thumbprint}] {
			if j != i {
				out[i] = append(out[i], collision{k, clusters[j].Name()})
			}
		}
	})
	return out
}

// each goes through the keys of all clusters, under each issuer that they have.
func each(clusters []Cluster, sets map[int]jwk.Set, do func(i int, issuer string, k jwk.Key)) {
	for i := range clusters {
		issuers := []string{clusters[i].Keys.Issuer}
		if clusters[i].Keys.Legacy && issuers[0] != jwks.LegacyIssuer {
			issuers = append(issuers, jwks.LegacyIssuer)
		}
		for _, k := range sets[i].Keys {
			for _, issuer := range issuers {
				do(i, issuer, k)
			}
		}
	}
}

// conflict says that a cluster has keys of others.
func conflict(c *Cluster, collisions []collision) policy.Finding {
	var others []string
	for _, s := range collisions {
		others = append(others, fmt.Sprintf("%q (%s)", s.other, s.key.Thumbprint))
	}
	return policy.Finding{
		Severity: policy.Error, Path: c.Spec.Path + keysField,
		Message: fmt.Sprintf("the key %s is also a key of cluster %s, so a token of one is a token of the other",
			collisions[0].key.ID, strings.Join(slices.Compact(others), ", ")),
		Fix: "give each cluster a signing key of its own, or remove one of the two",
	}
}

// keysField is where a conflict is found.
const keysField = ".keys"

// Conflicting reports whether keys of c are refused because another cluster has
// them too.
func (c *Cluster) Conflicting() bool {
	return slices.ContainsFunc(c.Findings, func(f policy.Finding) bool {
		return f.Severity == policy.Error && f.Path == c.Spec.Path+keysField && strings.Contains(f.Message, "is also a key of cluster")
	})
}
