package jwks

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// snapshot is the index that Lookup reads. Once current it never changes.
type snapshot struct {
	generation uint64
	issuers    map[string]*trust
	// pending is set while what clusters publish on the hub is not known yet.
	pending bool
	// replaced is closed when a newer snapshot is current.
	replaced chan struct{}
}

// trust is what is believed of one issuer.
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
	// published is set for keys that the cluster's agent vouches for; the
	// others an administrator does.
	published bool
	// source is where to ask again, nil if that is of no use.
	source *member
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
func (t *trust) admit(issuer string, c claim, shared map[string]*conflict) []SharedKeyError {
	var refused []SharedKeyError
	t.clusters = append(t.clusters, c.cluster)
	if len(c.keys) == 0 {
		t.keyless = append(t.keyless, c.cluster)
	}
	if c.source != nil {
		t.remotes = append(t.remotes, c.source)
	}
	for _, key := range c.keys {
		if x := shared[key.Thumbprint]; x != nil && x.refuses(c, issuer) {
			refusal := SharedKeyError{Issuer: issuer, KeyID: key.ID, Thumbprint: key.Thumbprint, Clusters: x.clusters}
			t.shared[key.ID] = &refusal
			refused = append(refused, refusal)
			continue
		}
		t.keys[key.ID] = append(t.keys[key.ID], Key{Key: key, Cluster: c.cluster})
	}
	return refused
}

// conflict is a key of several clusters.
type conflict struct {
	clusters []string // Sorted.
	// configured counts, by issuer, the clusters to which an administrator
	// gave the key.
	configured map[string]int
}

// refuses says whether c loses the key under issuer. What an agent publishes never counts
// against what an administrator configured; two clusters that are configured
// with one key can still be told apart by their issuers.
func (x *conflict) refuses(c claim, issuer string) bool {
	return c.published || x.configured[issuer] > 1
}

// conflicts finds, by thumbprint, the keys that several clusters claim, under
// whatever issuer and key id.
func conflicts(claims []claim) map[string]*conflict {
	first := make(map[string]int) // Which claim has it, by thumbprint.
	found := make(map[string]*conflict)
	for i, c := range claims {
		for _, key := range c.keys {
			before, taken := first[key.Thumbprint]
			switch {
			case !taken:
				first[key.Thumbprint] = i
			case before == i: // The cluster lists it under two ids.
			case found[key.Thumbprint] == nil:
				x := &conflict{configured: make(map[string]int)}
				x.add(claims[before])
				x.add(c)
				found[key.Thumbprint] = x
			default:
				found[key.Thumbprint].add(c)
			}
		}
	}
	return found
}

func (x *conflict) add(c claim) {
	if slices.Contains(x.clusters, c.cluster) {
		return
	}
	x.clusters = append(x.clusters, c.cluster)
	slices.Sort(x.clusters)
	if c.published {
		return
	}
	for _, issuer := range c.issuers() {
		x.configured[issuer]++
	}
}

// lost says whether a key of before is not in after.
func lost(before, after map[string]*trust) bool {
	for issuer, old := range before {
		now := after[issuer]
		if now == nil {
			return true
		}
		for id, keys := range old.keys {
			for _, key := range keys {
				if !slices.ContainsFunc(now.keys[id], key.equal) {
					return true
				}
			}
		}
	}
	return false
}

func (k Key) equal(other Key) bool {
	return k.Cluster == other.Cluster && same(k.Key, other.Key)
}

// same says whether two keys of a set verify the same signatures.
func same(a, b jwk.Key) bool {
	return a.ID == b.ID && a.Thumbprint == b.Thumbprint && a.Algorithm == b.Algorithm
}
