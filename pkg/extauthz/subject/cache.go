package subject

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/fingerprint"
)

// The cache of verified tokens.
const (
	// stripes is how many locks share the load.
	stripes = 16
	// cachedTokens is how many tokens are remembered in all.
	cachedTokens = 32 << 10
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
	return e.generation == generation && !now.Before(e.from) && now.Before(e.till)
}

// cache remembers verified tokens by their fingerprints.
type cache struct {
	stripes [stripes]*lru.Cache[fingerprint.Sum, *entry]
}

func newCache() *cache {
	c := &cache{}
	for i := range c.stripes {
		c.stripes[i], _ = lru.New[fingerprint.Sum, *entry](cachedTokens / stripes) // Fails for sizes below 1 only.
	}
	return c
}

func (c *cache) stripe(sum fingerprint.Sum) *lru.Cache[fingerprint.Sum, *entry] {
	return c.stripes[sum[0]%stripes]
}

func (c *cache) get(sum fingerprint.Sum) *entry {
	e, _ := c.stripe(sum).Get(sum)
	return e
}

func (c *cache) add(sum fingerprint.Sum, e *entry) { c.stripe(sum).Add(sum, e) }

func (c *cache) remove(sum fingerprint.Sum) { c.stripe(sum).Remove(sum) }
