package exchange

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
)

// limiter bounds how much is minted for a cluster and for an identity.
type limiter struct {
	mu         sync.Mutex
	settings   Settings
	clusters   map[string]*rate.Limiter
	identities *simplelru.LRU[identity, *rate.Limiter]
}

// identity is without the UID: recreating a ServiceAccount gives no new bucket.
type identity struct{ cluster, namespace, name string }

func newLimiter(size int) (*limiter, error) {
	identities, err := simplelru.NewLRU[identity, *rate.Limiter](size, nil)
	return &limiter{clusters: map[string]*rate.Limiter{}, identities: identities}, err
}

// configure begins with full buckets.
func (l *limiter) configure(s Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settings = s
	clear(l.clusters)
	l.identities.Purge()
}

// take takes one token of both buckets, or says how long there will be none.
// An identity that asks for too much does not empty its cluster's bucket.
func (l *limiter) take(id subject.Identity, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	settings, _ := l.settings.cluster(id.Cluster)
	limits := settings.Limits.withDefaults()
	who := identity{cluster: id.Cluster, namespace: id.Account.Namespace, name: id.Account.Name}
	own, ok := l.identities.Get(who)
	if !ok {
		own = bucket(limits.Identity)
		l.identities.Add(who, own)
	}
	if wait := reserve(own, now); wait > 0 {
		return limited(wait, "the identity asks for more tokens than its limit allows")
	}
	all := l.clusters[id.Cluster]
	if all == nil {
		all = bucket(limits.Cluster)
		l.clusters[id.Cluster] = all
	}
	if wait := reserve(all, now); wait > 0 {
		return limited(wait, "cluster "+id.Cluster+" asks for more tokens than its limit allows")
	}
	return nil
}

func bucket(r Rate) *rate.Limiter { return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst) }

// reserve takes a token and returns 0, or returns when there will be one.
func reserve(l *rate.Limiter, now time.Time) time.Duration {
	r := l.ReserveN(now, 1)
	if !r.OK() {
		return time.Minute
	}
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func limited(wait time.Duration, detail string) error {
	return &verdict.Error{Reason: verdict.RateLimited, Detail: detail, RetryAfter: wait}
}
