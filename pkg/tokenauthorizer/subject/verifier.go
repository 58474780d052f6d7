package subject

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/fingerprint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// Keys are the clusters' keys at one moment; a *jwks.View in production. A
// generation does not move in them: With replaces them.
type Keys interface {
	// Lookup returns the keys that issuer has under the id kid, whichever
	// clusters they belong to. It fails with a denial.Error.
	Lookup(ctx context.Context, issuer, kid string) ([]jwks.Key, error)
	// Generation returns the generation of a cluster, 0 for one without keys: it
	// changes whenever a key of the cluster is removed.
	Generation(cluster string) uint64
}

// Verifier verifies subject tokens. It may be used by many goroutines.
type Verifier struct {
	keys   Keys
	rules  func(cluster string) *Rules
	clock  clock.PassiveClock
	checks []check
	hasher *fingerprint.Hasher
	cache  *cache
}

// NewVerifier returns a Verifier of tokens that keys verify. rules returns what
// is demanded of a cluster's tokens, nil for a cluster that has no entry. It is
// asked at every call and must be quick; what was verified under other Rules,
// which their address identifies, is verified again.
func NewVerifier(keys Keys, rules func(cluster string) *Rules, clock clock.PassiveClock) *Verifier {
	v := &Verifier{keys: keys, rules: rules, clock: clock, hasher: fingerprint.New(), cache: newCache()}
	v.checks = v.chain()
	return v
}

// With returns a Verifier with other keys and rules, and with the memory of v:
// tokens of clusters whose Rules and keys' generation are the same are not
// verified again.
func (v *Verifier) With(keys Keys, rules func(cluster string) *Rules) *Verifier {
	next := *v
	next.keys, next.rules = keys, rules
	next.checks = next.chain()
	return &next
}

// Verify returns the identity that token proves, or a denial.Error. With an error, the
// identity holds what had been proven until then, above all the cluster, for audit
// lines and metrics; nothing may be granted to it.
//
// Verify recognizes a token that it verified in the last minute by its fingerprint, and
// checks only its times, its keys' generation and its cluster's rules again.
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	if denied := checkSize(token); denied != nil {
		return Identity{}, denied
	}
	now := v.clock.Now()
	sum := v.hasher.Sum(token)
	if known := v.cache.get(sum); known != nil {
		if known.good(now, v.keys.Generation(known.identity.Cluster)) && known.rules == v.rules(known.identity.Cluster) {
			v.cache.stripe(sum).hits.Add(1)
			return known.identity, nil
		}
		v.cache.remove(sum)
	}
	v.cache.stripe(sum).misses.Add(1)
	a := &attempt{token: token, now: now}
	if denied := v.run(ctx, a, nil); denied != nil {
		return a.identity, denied
	}
	if len(token) <= maxCachedBytes {
		v.cache.add(sum, newEntry(a, v.keys.Generation(a.identity.Cluster)), len(token))
	}
	return a.identity, nil
}

// Counts says how many tokens were known when they came, and how many had to be
// verified, since NewVerifier.
func (v *Verifier) Counts() (hits, misses uint64) { return v.cache.counts() }

// Explain verifies token as Verify does, without looking at what is remembered,
// and informs step about every check until the first that refuses.
func (v *Verifier) Explain(ctx context.Context, token string, step func(Step)) (Identity, error) {
	a := &attempt{token: token, now: v.clock.Now()}
	if denied := v.run(ctx, a, step); denied != nil {
		return a.identity, denied
	}
	return a.identity, nil
}

func (v *Verifier) run(ctx context.Context, a *attempt, step func(Step)) *denial.Error {
	for i := range v.checks {
		c := &v.checks[i]
		denied := c.do(ctx, a)
		if step != nil {
			done := Step{Name: c.name, Denial: denied}
			if denied == nil {
				done.Detail = c.found(a)
			}
			step(done)
		}
		if denied != nil {
			return denied
		}
	}
	return nil
}
