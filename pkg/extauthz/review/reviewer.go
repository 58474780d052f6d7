package review

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/fingerprint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
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
	cache    *lru.Cache[fingerprint.Sum, outcome]
	flight   singleflight.Group
}

// outcome is what a review found, and how long that counts.
type outcome struct {
	refusal    *verdict.Error
	from, till time.Time
}

// New returns a Reviewer as settings say. It reads the kubeconfig and calls nobody.
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
		r.cache, err = lru.New[fingerprint.Sum, outcome](cachedReviews)
	}
	return r, err
}

// Review returns a verdict.Error unless the API server of the cluster confirms
// that token is id's. In mode Cached it may wait for a call that another request
// of the same token began, and a call goes on when its caller does not wait.
func (r *Reviewer) Review(ctx context.Context, cluster, token string, id subject.Identity) error {
	var refusal *verdict.Error
	switch r.settings.Mode {
	case Cached:
		refusal = r.cached(ctx, cluster, token, id)
	case Always:
		refusal = r.ask(ctx, cluster, token, id)
	case Never:
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

func (r *Reviewer) cached(ctx context.Context, cluster, token string, id subject.Identity) *verdict.Error {
	sum := r.hasher.Sum(token)
	if known, ok := r.cache.Get(sum); ok {
		if now := r.clock.Now(); !now.Before(known.from) && now.Before(known.till) {
			return known.refusal
		}
	}
	result := r.flight.DoChan(string(sum[:]), func() (any, error) {
		from := r.clock.Now() // What is deleted while the call runs may be missed by it.
		refusal := r.ask(context.WithoutCancel(ctx), cluster, token, id)
		r.cache.Add(sum, outcome{refusal: refusal, from: from, till: from.Add(r.counts(refusal))})
		return refusal, nil
	})
	select {
	case got := <-result:
		refusal, _ := got.Val.(*verdict.Error)
		return refusal
	case <-ctx.Done():
		refusal := verdict.Refuse(verdict.Deadline, "the cluster %s has not reviewed it yet: %w", cluster, ctx.Err())
		refusal.RetryAfter = retryAfter
		return refusal
	}
}

// counts is how long the outcome of a review counts.
func (r *Reviewer) counts(refusal *verdict.Error) time.Duration {
	if refusal != nil && refusal.Reason.Class() == verdict.Unavailable {
		return failureTTL
	}
	return r.settings.TTL
}

// ask makes one call.
func (r *Reviewer) ask(ctx context.Context, cluster, token string, id subject.Identity) *verdict.Error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	audiences := r.settings.Audiences
	if id.Token.Legacy && len(id.Token.Audiences) == 0 {
		audiences = nil // The API server takes such a token for its own audience alone.
	}
	status, refusal := r.file.client().review(ctx, cluster, token, audiences)
	if refusal != nil {
		return refusal
	}
	user := names.ServiceAccountUser(id.Account.Namespace, id.Account.Name)
	if status.User.Username != user || status.User.UID != id.Account.UID {
		return verdict.Refuse(verdict.ClaimsMismatch, "the API server of the cluster %s says it is %q with UID %q, and the token says %q with UID %q",
			cluster, status.User.Username, status.User.UID, user, id.Account.UID)
	}
	return nil
}
