package subject

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/fingerprint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/fair"
)

// The cache of verified tokens.
const (
	// stripes is how many locks share the load.
	stripes = 16
	// cachedBytes is how much memory remembered tokens take in all, by an estimate
	// of what a token and its entry hold on to.
	cachedBytes = 32 << 20
	entryBytes  = 512
	// maxCachedBytes bounds what one token can hold on to.
	maxCachedBytes = 4 << 10
	// rememberFor is how long a verification counts.
	rememberFor = time.Minute
)

// entry is a token that was verified.
type entry struct {
	identity   Identity
	rules      *Rules
	generation uint64
	from, till time.Time
}

func newEntry(a *attempt, generation uint64) *entry {
	e := &entry{identity: a.identity, rules: a.rules, generation: generation, till: a.now.Add(rememberFor)}
	if end := a.identity.Token.NotAfter; !end.IsZero() && end.Before(e.till) {
		e.till = end
	}
	e.from = a.claims.notBefore
	if a.claims.issuedAt.After(e.from) {
		e.from = a.claims.issuedAt
	}
	e.from = e.from.Add(-a.rules.Skew)
	return e
}

// good says whether the token's times and its key still stand.
func (e *entry) good(now time.Time, generation uint64) bool {
	return generation != 0 && e.generation == generation && !now.Before(e.from) && now.Before(e.till)
}

// cache remembers verified tokens by their fingerprints.
type cache struct {
	stripes [stripes]stripe
}

type stripe struct {
	mu     sync.Mutex
	tokens *fair.Cache[fingerprint.Sum, *entry]
	// hits and misses count whether a token was known, and known to be good.
	hits, misses atomic.Uint64
}

func newCache() *cache {
	c := &cache{}
	for i := range c.stripes {
		c.stripes[i].tokens = fair.New[fingerprint.Sum, *entry](cachedBytes/stripes, nil)
	}
	return c
}

func (c *cache) stripe(sum fingerprint.Sum) *stripe { return &c.stripes[sum[0]%stripes] }

func (c *cache) get(sum fingerprint.Sum) *entry {
	s := c.stripe(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.tokens.Get(sum)
	return e
}

// add remembers a token of size bytes.
func (c *cache) add(sum fingerprint.Sum, e *entry, size int) {
	s := c.stripe(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens.Add(e.identity.Cluster, sum, e, entryBytes+size)
}

// counts are the hits and misses so far.
func (c *cache) counts() (hits, misses uint64) {
	for i := range c.stripes {
		hits += c.stripes[i].hits.Load()
		misses += c.stripes[i].misses.Load()
	}
	return hits, misses
}

func (c *cache) remove(sum fingerprint.Sum) {
	s := c.stripe(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens.Remove(sum)
}
