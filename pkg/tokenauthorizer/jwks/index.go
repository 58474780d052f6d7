package jwks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
)

// index is the trusted part of the clusters' claims. The cost of a change depends on
// the clusters that change and on those that claim one of their keys as well, but not
// on the number of others.
type index struct {
	tables

	// claims of the clusters, by name.
	claims map[string]*claim
	// standings are the results of the claims.
	standings map[string]*standing
	// holders are the clusters that claim a key, by its thumbprint, under any issuer
	// and key id. The slices are sorted and never changed.
	holders map[string][]string
	// generation is the last that was given to a cluster.
	generation uint64
}

// tables are a View's part of the index.
type tables struct {
	// keys by key id and issuer, each sorted by cluster.
	keys table[[]Key]
	// shared are the refused keys, by key id, issuer and thumbprint.
	shared table[*SharedKeyError]
	// clusters, by issuer and name.
	clusters table[struct{}]
	// empty are the clusters without keys, by issuer and name.
	empty table[struct{}]
	// remotes are the members that can be asked again for a key that is not known, by
	// issuer and cluster.
	remotes table[*member]
	// generations by cluster.
	generations table[uint64]
}

// standing is the result of a claim. It never changes.
type standing struct {
	claim *claim
	// placed are the keys that count.
	placed []placed
	// refused are the rejected keys, because another cluster has them too.
	refused []SharedKeyError
}

// placed is a key under an issuer.
type placed struct {
	issuer string
	key    Key
}

// claim is one cluster's input to the index.
type claim struct {
	cluster, issuer string
	// legacy is set if the keys are taken for LegacyIssuer's as well.
	legacy bool
	keys   []jwk.Key
	// support is the evidence for the keys.
	support keytrust.Support
	// source is the source to ask again, nil if that is of no use.
	source *member
}

// key is the claim in the words of package keytrust.
func (c *claim) key() keytrust.Claim {
	return keytrust.Claim{Cluster: c.cluster, Issuers: c.issuers(), Support: c.support}
}

func (c *claim) issuers() []string {
	if c.legacy && c.issuer != LegacyIssuer {
		return []string{c.issuer, LegacyIssuer}
	}
	return []string{c.issuer}
}

// equal reports whether two claims contribute the same keys; nil contributes nothing.
func (c *claim) equal(other *claim) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.issuer == other.issuer && c.legacy == other.legacy && c.support == other.support &&
		c.source == other.source && equalKeys(c.keys, other.keys)
}

func newIndex() *index {
	return &index{
		tables: tables{
			keys: newTable[[]Key](), shared: newTable[*SharedKeyError](), clusters: newTable[struct{}](),
			empty: newTable[struct{}](), remotes: newTable[*member](), generations: newTable[uint64](),
		},
		claims: make(map[string]*claim), standings: make(map[string]*standing), holders: make(map[string][]string),
	}
}

// copy costs the same at every size.
func (t *tables) copy() tables {
	return tables{
		keys: t.keys.copy(), shared: t.shared.copy(), clusters: t.clusters.copy(),
		empty: t.empty.copy(), remotes: t.remotes.copy(), generations: t.generations.copy(),
	}
}

// apply replaces the claims of clusters in one step, by name, nil for a cluster that
// claims nothing any more. It returns the clusters that are gone.
func (x *index) apply(claims map[string]*claim) (gone []string) {
	concerned := sets.New[string]()
	for cluster, now := range claims {
		if before := x.claims[cluster]; !before.equal(now) {
			concerned.Insert(cluster)
		}
	}
	changed := sets.List(concerned)
	for thumbprint := range x.thumbprints(changed, claims) {
		concerned.Insert(x.holders[thumbprint]...)
	}
	for _, cluster := range changed {
		x.record(cluster, claims[cluster])
	}
	for cluster := range concerned {
		x.withdraw(x.standings[cluster])
	}
	for _, cluster := range sets.List(concerned) {
		before, now := x.standings[cluster], x.claims[cluster]
		if now == nil {
			delete(x.standings, cluster)
			x.generations.remove(path{cluster})
			gone = append(gone, cluster)
			continue
		}
		after := x.place(now)
		x.standings[cluster] = after
		if before == nil || before.lost(after) {
			x.generation++
			x.generations.set(path{cluster}, x.generation)
		}
	}
	return gone
}

// thumbprints returns the thumbprints of the keys that clusters claim, and of those
// that they claim from now on.
func (x *index) thumbprints(clusters []string, now map[string]*claim) sets.Set[string] {
	found := sets.New[string]()
	for _, cluster := range clusters {
		for _, c := range []*claim{x.claims[cluster], now[cluster]} {
			if c == nil {
				continue
			}
			for _, key := range c.keys {
				found.Insert(key.Thumbprint)
			}
		}
	}
	return found
}

// record makes now the claim of cluster, of which nothing comes before place.
func (x *index) record(cluster string, now *claim) {
	if before := x.claims[cluster]; before != nil {
		delete(x.claims, cluster)
		for _, key := range before.keys {
			others := without(x.holders[key.Thumbprint], cluster)
			if x.holders[key.Thumbprint] = others; len(others) == 0 {
				delete(x.holders, key.Thumbprint)
			}
		}
	}
	if now == nil {
		return
	}
	x.claims[cluster] = now
	for _, key := range now.keys {
		others := without(x.holders[key.Thumbprint], cluster) // It may list the key under two ids.
		i, _ := slices.BinarySearch(others, cluster)
		x.holders[key.Thumbprint] = slices.Insert(others, i, cluster)
	}
}

// without returns a copy of sorted that does not have the cluster.
func without(sorted []string, cluster string) []string {
	return slices.DeleteFunc(slices.Clone(sorted), func(other string) bool { return other == cluster })
}

// withdraw takes a standing out of the tables; nil is in none.
func (x *index) withdraw(s *standing) {
	if s == nil {
		return
	}
	cluster := s.claim.cluster
	for _, issuer := range s.claim.issuers() {
		x.clusters.remove(path{issuer, cluster})
		x.empty.remove(path{issuer, cluster})
		x.remotes.remove(path{issuer, cluster})
	}
	for _, p := range s.placed {
		at := path{p.key.ID, p.issuer}
		rest := slices.DeleteFunc(slices.Clone(x.keys.get(at)), func(k Key) bool { return k.Cluster == cluster })
		if len(rest) == 0 {
			x.keys.remove(at)
		} else {
			x.keys.set(at, rest)
		}
	}
	for i := range s.refused {
		x.shared.remove(s.refused[i].path())
	}
}

// place enters a claim into the tables.
func (x *index) place(c *claim) *standing {
	s := &standing{claim: c}
	for _, issuer := range c.issuers() {
		x.clusters.set(path{issuer, c.cluster}, struct{}{})
		if len(c.keys) == 0 {
			x.empty.set(path{issuer, c.cluster}, struct{}{})
		}
		if c.source != nil {
			x.remotes.set(path{issuer, c.cluster}, c.source)
		}
		for _, key := range c.keys {
			if x.refuses(c, issuer, key) {
				s.refused = append(s.refused, SharedKeyError{Issuer: issuer, KeyID: key.ID, Thumbprint: key.Thumbprint, Clusters: x.holders[key.Thumbprint]})
				continue
			}
			own := Key{Key: key, Cluster: c.cluster}
			s.placed = append(s.placed, placed{issuer, own})
			x.keys.set(path{key.ID, issuer}, insert(x.keys.get(path{key.ID, issuer}), own))
		}
	}
	for i := range s.refused {
		x.shared.set(s.refused[i].path(), &s.refused[i])
	}
	return s
}

// refuses says whether key must not count for c, because other clusters claim it.
func (x *index) refuses(c *claim, issuer string, key jwk.Key) bool {
	holders := x.holders[key.Thumbprint]
	return len(holders) > 1 && slices.ContainsFunc(holders, func(other string) bool {
		return c.key().Refused(issuer, []keytrust.Claim{x.claims[other].key()})
	})
}

// insert returns a copy of keys, sorted by cluster, that has key as well.
func insert(keys []Key, key Key) []Key {
	i, _ := slices.BinarySearchFunc(keys, key, func(a, b Key) int { return strings.Compare(a.Cluster, b.Cluster) })
	return slices.Insert(slices.Clip(keys), i, key)
}

// lost says whether a key of s is not in after.
func (s *standing) lost(after *standing) bool {
	return slices.ContainsFunc(s.placed, func(p placed) bool { return !slices.ContainsFunc(after.placed, p.equal) })
}

func (p placed) equal(other placed) bool {
	return p.issuer == other.issuer && same(p.key.Key, other.key.Key)
}

// path is the error's place in the tables. Each change of one of its clusters affects
// all of them, so that one row is enough.
func (e *SharedKeyError) path() path { return path{e.KeyID, e.Issuer, e.Thumbprint} }

// rejected are the keys that are refused because several clusters have them, by cluster.
func (x *index) rejected() map[string][]SharedKeyError {
	found := make(map[string][]SharedKeyError)
	for cluster, s := range x.standings {
		if len(s.refused) > 0 {
			found[cluster] = s.refused
		}
	}
	return found
}

// refused returns the rejected keys of one cluster.
func (x *index) refused(cluster string) []SharedKeyError {
	if s := x.standings[cluster]; s != nil {
		return s.refused
	}
	return nil
}

// same says whether two keys of a set verify the same signatures.
func same(a, b jwk.Key) bool {
	return a.ID == b.ID && a.Thumbprint == b.Thumbprint && a.Algorithm == b.Algorithm
}
