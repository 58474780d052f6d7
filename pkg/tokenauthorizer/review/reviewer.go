package review

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/fingerprint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

const (
	// cachedReviews is how many tokens of a cluster are remembered.
	cachedReviews = 4 << 10
	// failureTTL is how long a call that failed stands for others of the same token.
	failureTTL = time.Second
)

// Reviewer reviews the tokens of one cluster. It may be used by many goroutines.
type Reviewer struct {
	settings Settings
	clock    clock.PassiveClock
	file     *file // Nil in mode Never.
	hasher   *fingerprint.Hasher
	cache    *cache.LRUExpireCache // Of outcomes, by fingerprint.
	flight   singleflight.Group
}

// outcome is the result of a review, and the time from which it is valid.
type outcome struct {
	denied *denial.Error
	from   time.Time
}

// New returns a Reviewer as settings say. It reads the kubeconfig and makes no call.
func New(settings Settings, clock clock.PassiveClock) (*Reviewer, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	r := &Reviewer{settings: settings, clock: clock}
	if settings.Mode == Never || settings.Mode == "" {
		return r, nil
	}
	if r.settings.TTL == 0 {
		r.settings.TTL = DefaultTTL
	}
	var err error
	if r.file, err = open(settings, clock); err != nil {
		return nil, err
	}
	if settings.Mode == Cached {
		r.hasher = fingerprint.New()
		r.cache = cache.NewLRUExpireCacheWithClock(cachedReviews, clock)
	}
	return r, nil
}

// Review returns a denial.Error unless the API server of the cluster confirms
// that token is id's. In mode Cached it may wait for a call that another request
// of the same token began, and a call continues when its caller does not wait.
func (r *Reviewer) Review(ctx context.Context, cluster, token string, id subject.Identity) error {
	var denied *denial.Error
	switch r.settings.Mode {
	case Cached:
		denied = r.cached(ctx, cluster, token, id)
	case Always:
		denied = r.ask(ctx, cluster, token, id)
	case Never:
	}
	if denied != nil {
		return denied
	}
	return nil
}

func (r *Reviewer) cached(ctx context.Context, cluster, token string, id subject.Identity) *denial.Error {
	sum := r.hasher.Sum(token)
	cached, _ := r.cache.Get(sum)
	if known, ok := cached.(outcome); ok {
		if age := r.clock.Since(known.from); age >= 0 && age < r.counts(known.denied) {
			return known.denied
		}
	}
	result := r.flight.DoChan(string(sum[:]), func() (any, error) {
		from := r.clock.Now() // What is deleted while the call runs may be missed by it.
		denied := r.ask(context.WithoutCancel(ctx), cluster, token, id)
		r.cache.Add(sum, outcome{denied: denied, from: from}, r.counts(denied))
		return denied, nil
	})
	select {
	case got := <-result:
		denied, _ := got.Val.(*denial.Error)
		return denied
	case <-ctx.Done():
		denied := denial.New(denial.Deadline, "the cluster %s has not reviewed it yet: %w", cluster, ctx.Err())
		denied.RetryAfter = retryAfter
		return denied
	}
}

// counts is how long the outcome of a review counts.
func (r *Reviewer) counts(denied *denial.Error) time.Duration {
	if denied != nil && denied.Reason.Class() == denial.Unavailable {
		return failureTTL
	}
	return r.settings.TTL
}

// ask makes one call.
func (r *Reviewer) ask(ctx context.Context, cluster, token string, id subject.Identity) *denial.Error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	audiences := r.settings.Audiences
	if id.Token.Legacy && len(id.Token.Audiences) == 0 {
		audiences = nil // The API server takes such a token for its own audience alone.
	}
	status, denied := r.file.client().review(ctx, cluster, token, audiences)
	if denied != nil {
		return denied
	}
	user := names.ServiceAccountUser(id.Account.Namespace, id.Account.Name)
	if status.User.Username != user || status.User.UID != id.Account.UID {
		return denial.New(denial.ClaimsMismatch, "the API server of the cluster %s says it is %q with UID %q, and the token says %q with UID %q",
			cluster, status.User.Username, status.User.UID, user, id.Account.UID)
	}
	return nil
}
