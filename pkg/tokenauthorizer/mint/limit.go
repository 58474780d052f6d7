package mint

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/fair"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// limiter bounds how much is minted for a cluster and for an identity.
type limiter struct {
	mu         sync.Mutex
	settings   Settings
	clusters   map[string]*rate.Limiter
	identities *fair.Cache[identity, *rate.Limiter]
}

// identity is without the UID: recreating a ServiceAccount gives no new bucket.
type identity struct{ cluster, namespace, name string }

func newLimiter(limit int) *limiter {
	return &limiter{clusters: map[string]*rate.Limiter{}, identities: fair.New[identity, *rate.Limiter](limit, nil)}
}

// bucketBytes is about what a bucket takes besides its texts.
const bucketBytes = 384

// configure keeps what is in the buckets: a change of the rules of one cluster
// fills no bucket, their own or another's.
func (l *limiter) configure(s Settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settings = s
	maps.DeleteFunc(l.clusters, func(cluster string, _ *rate.Limiter) bool {
		_, ok := s.cluster(cluster)
		return !ok
	})
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
		l.identities.Add(who.cluster, who, own, bucketBytes+len(who.cluster)+len(who.namespace)+len(who.name))
	}
	resize(own, limits.Identity, now)
	if wait := reserve(own, now); wait > 0 {
		return limited(wait, "the identity asks for more tokens than its limit allows")
	}
	all := l.clusters[id.Cluster]
	if all == nil {
		all = bucket(limits.Cluster)
		l.clusters[id.Cluster] = all
	}
	resize(all, limits.Cluster, now)
	if wait := reserve(all, now); wait > 0 {
		return limited(wait, "cluster "+id.Cluster+" asks for more tokens than its limit allows")
	}
	return nil
}

func bucket(r Rate) *rate.Limiter { return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst) }

// resize gives a bucket the rate of the settings in force, if it has another one.
func resize(l *rate.Limiter, r Rate, now time.Time) {
	if l.Limit() != rate.Limit(r.PerSecond) {
		l.SetLimitAt(now, rate.Limit(r.PerSecond))
	}
	if l.Burst() != r.Burst {
		l.SetBurstAt(now, r.Burst)
	}
}

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
	return &denial.Error{Reason: denial.RateLimited, Detail: detail, RetryAfter: wait}
}
