package jwks

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// View is what a Store knows at one moment. It never changes.
type View struct {
	store *Store
	// generations by cluster, as Generations returns them.
	generations map[string]uint64
	issuers     map[string]*trust
	// pending is set while what clusters publish on the hub is not known yet.
	pending bool
	// replaced is closed when a newer View is current.
	replaced chan struct{}
}

// Generations are those of the clusters that have keys, by name. A cluster's
// moves whenever one of its keys no longer counts; those of other clusters stay.
// What was verified under one generation of a cluster must be verified again
// under another, and what was verified for a cluster without one does not count.
// The map must not be changed.
func (v *View) Generations() map[string]uint64 { return v.generations }

// trust is what counts of one issuer.
type trust struct {
	// keys by key id, each with the cluster it names.
	keys map[string][]Key
	// shared are the key ids of keys that stand for several clusters.
	shared map[string]*SharedKeyError
	// clusters have this issuer.
	clusters []string
	// keyless are those whose source has given no keys yet, or not for too long.
	keyless []string
	// remotes can be asked again for a key that is not known.
	remotes []*member
}

// claim is what one cluster brings to the index.
type claim struct {
	cluster, issuer string
	// legacy is set if the keys are taken for LegacyIssuer's as well.
	legacy bool
	keys   []jwk.Key
	// support is what stands behind the keys.
	support keytrust.Support
	// source is where to ask again, nil if that is of no use.
	source *member
}

// key is the claim in the words of package keytrust.
func (c claim) key() keytrust.Claim {
	return keytrust.Claim{Cluster: c.cluster, Issuers: c.issuers(), Support: c.support}
}

func (c claim) issuers() []string {
	if c.legacy && c.issuer != LegacyIssuer {
		return []string{c.issuer, LegacyIssuer}
	}
	return []string{c.issuer}
}

// build makes the index of claims and says of each cluster which of its keys
// are refused because another one has them too.
func build(claims []claim) (map[string]*trust, map[string][]SharedKeyError) {
	shared := conflicts(claims)
	issuers := make(map[string]*trust)
	refused := make(map[string][]SharedKeyError)
	for _, c := range claims {
		for _, issuer := range c.issuers() {
			t := issuers[issuer]
			if t == nil {
				t = &trust{keys: make(map[string][]Key), shared: make(map[string]*SharedKeyError)}
				issuers[issuer] = t
			}
			if lost := t.admit(issuer, c, shared); len(lost) > 0 {
				refused[c.cluster] = append(refused[c.cluster], lost...)
			}
		}
	}
	return issuers, refused
}

// admit adds what c brings to the issuer that t is about, and returns the keys
// that are refused.
func (t *trust) admit(issuer string, c claim, shared map[string][]keytrust.Claim) []SharedKeyError {
	var refused []SharedKeyError
	t.clusters = append(t.clusters, c.cluster)
	if len(c.keys) == 0 {
		t.keyless = append(t.keyless, c.cluster)
	}
	if c.source != nil {
		t.remotes = append(t.remotes, c.source)
	}
	for _, key := range c.keys {
		if holders := shared[key.Thumbprint]; holders != nil && c.key().Refused(issuer, holders) {
			denied := SharedKeyError{Issuer: issuer, KeyID: key.ID, Thumbprint: key.Thumbprint, Clusters: clusters(holders)}
			t.shared[key.ID] = &denied
			refused = append(refused, denied)
			continue
		}
		t.keys[key.ID] = append(t.keys[key.ID], Key{Key: key, Cluster: c.cluster})
	}
	return refused
}

// conflicts finds, by thumbprint, the keys that several clusters claim,
// under any issuer and key id.
func conflicts(claims []claim) map[string][]keytrust.Claim {
	first := make(map[string]int) // Which claim has it, by thumbprint.
	found := make(map[string][]keytrust.Claim)
	for i, c := range claims {
		for _, key := range c.keys {
			before, taken := first[key.Thumbprint]
			switch {
			case !taken:
				first[key.Thumbprint] = i
			case before == i: // The cluster lists it under two ids.
			case found[key.Thumbprint] == nil:
				found[key.Thumbprint] = []keytrust.Claim{claims[before].key(), c.key()}
			default:
				found[key.Thumbprint] = append(found[key.Thumbprint], c.key())
			}
		}
	}
	return found
}

// clusters are those of claims, sorted.
func clusters(claims []keytrust.Claim) []string {
	var found []string
	for _, c := range claims {
		found = append(found, c.Cluster)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// lost returns the clusters of which a key of before is not in after.
func lost(before, after map[string]*trust) map[string]bool {
	clusters := make(map[string]bool)
	for issuer, old := range before {
		now := after[issuer]
		for id, keys := range old.keys {
			for _, key := range keys {
				if now == nil || !slices.ContainsFunc(now.keys[id], key.equal) {
					clusters[key.Cluster] = true
				}
			}
		}
	}
	return clusters
}

func (k Key) equal(other Key) bool {
	return k.Cluster == other.Cluster && same(k.Key, other.Key)
}

// same says whether two keys of a set verify the same signatures.
func same(a, b jwk.Key) bool {
	return a.ID == b.ID && a.Thumbprint == b.Thumbprint && a.Algorithm == b.Algorithm
}
