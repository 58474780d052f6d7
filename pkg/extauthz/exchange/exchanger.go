package exchange

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/policy"
)

const (
	// reserveShare and reserveLeast are what a token must have left of its life
	// to be handed out again: a fifth, and two minutes.
	reserveShare = 5
	reserveLeast = 2 * time.Minute
	// denialLife is how long a missing target and a missing permission are
	// trusted.
	denialLife = 5 * time.Second
	// unwatchedLife is how long a token counts whose target's deletion would
	// not be noticed.
	unwatchedLife = time.Minute
)

// renewal begins early enough that no request meets a token that may not be
// handed out any more.
func renewal() credential.RenewalPolicy { return credential.RenewalPolicy{Latest: 0.79, Spread: 0.09} }

// Exchanger mints tokens of the hub and keeps them. Its methods may be called
// from any goroutine.
type Exchanger struct {
	config   Config
	hub      *hub
	metrics  *metrics
	limits   *limiter
	accounts *accounts
	tokens   *store
	denials  *store

	mu      sync.Mutex
	flights map[key]*flight
	// shares counts the flights by cluster.
	shares   map[string]int
	settings *Settings
	// forbidden is, by namespace, what the hub did not let us do last.
	forbidden map[string]*denial.Error
}

// flight is a mint that is on its way, and all who wait for it.
type flight struct {
	done chan struct{}
	// token and err are set before done is closed.
	token Token
	err   error
}

// New returns an Exchanger.
func New(c Config) (*Exchanger, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Exchanger{config: c, flights: map[key]*flight{}, shares: map[string]int{}, forbidden: map[string]*denial.Error{}}
	if e.hub, err = newHub(c.Hub, c.Clock); err != nil {
		return nil, err
	}
	e.metrics, err = newMetrics(c.Metrics)
	e.limits = newLimiter(c.Bytes / 8)
	e.tokens = newStore(c.Bytes, e.metrics.evicted.Inc)
	e.denials = newStore(c.Bytes/8, func() {})
	e.accounts = newAccounts(e.hub.accounts, e.seen, e.lost)
	return e, err
}

// Configure makes s the settings. Tokens that were minted under other rules, or
// for a cluster that s does not know, are forgotten.
func (e *Exchanger) Configure(s Settings) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settings = &s
	clear(e.forbidden)
	e.limits.configure(s)
	e.accounts.pin(s.Namespaces)
	outdated := func(kept *entry) bool { return !e.current(kept.key) }
	e.tokens.sweep(outdated)
	e.denials.sweep(outdated)
}

// current says whether k is of the rules in force; it is called with the lock held.
func (e *Exchanger) current(k key) bool {
	if e.settings == nil {
		return true
	}
	c, ok := e.settings.cluster(k.cluster)
	return ok && c.Generation == k.generation
}

// EvictCluster forgets the tokens of a cluster that has left.
func (e *Exchanger) EvictCluster(name string) {
	left := func(kept *entry) bool { return kept.key.cluster == name }
	e.tokens.sweep(left)
	e.denials.sweep(left)
}

// Status describes the target namespaces, in no order.
func (e *Exchanger) Status() []NamespaceStatus {
	all := e.accounts.status()
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Namespace] = true
		if refused, ok := e.forbidden[all[i].Namespace]; ok {
			all[i].Err = refused
		}
	}
	for namespace, refused := range e.forbidden {
		if !seen[namespace] {
			all = append(all, NamespaceStatus{Namespace: namespace, Err: refused})
		}
	}
	return all
}

// seen is called by the watch when a target is there.
func (e *Exchanger) seen(t target, uid string) {
	e.tokens.confirm(t, uid)
	e.denials.evict(t, always)
}

// lost is called by the watch when a target is gone. A token of one that was
// created in its place stays.
func (e *Exchanger) lost(t target, uid string) {
	e.tokens.evict(t, func(kept *entry) bool { return kept.uid == uid || kept.uid == "" })
}

func always(*entry) bool { return true }

// Exchange returns a token for r, and whether it was minted for an earlier
// request. Its errors are *denial.Error.
func (e *Exchanger) Exchange(ctx context.Context, r Request) (Token, bool, error) {
	k := keyOf(&r)
	if kept, ok := e.cached(k); ok {
		e.metrics.hits.Inc()
		return kept, true, nil
	}
	e.metrics.misses.Inc()
	f, err := e.join(ctx, k, r)
	if err != nil {
		return Token{}, false, err
	}
	select {
	case <-f.done:
		return f.token, false, f.err
	case <-ctx.Done():
		return Token{}, false, &denial.Error{
			Reason: denial.Deadline, Detail: "the hub is still making the token; ask again", RetryAfter: time.Second, Err: ctx.Err(),
		}
	}
}

// cached returns the token that is stored for k.
func (e *Exchanger) cached(k key) (Token, bool) {
	kept, ok := e.tokens.get(k)
	if !ok || !kept.counts(e.config.Clock.Now()) {
		return Token{}, false
	}
	kept.used.Store(true)
	return kept.token, true
}

// join returns the flight for k, a new one if there is none and the limits
// allow it.
func (e *Exchanger) join(ctx context.Context, k key, r Request) (*flight, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.flights[k]; ok {
		return f, nil
	}
	if kept, ok := e.cached(k); ok { // A flight has landed between our look and the lock.
		f := &flight{done: make(chan struct{}), token: kept}
		close(f.done)
		return f, nil
	}
	if err := e.admit(k, r); err != nil {
		e.metrics.minted(k.cluster, err)
		return nil, err
	}
	return e.start(ctx, k, r.Target), nil
}

// admit refuses what need not be asked for now.
func (e *Exchanger) admit(k key, r Request) error {
	now := e.config.Clock.Now()
	if known, ok := e.denials.get(k); ok && now.Before(known.until) {
		return known.denied
	}
	if err := e.limits.take(r.Subject, now); err != nil {
		return err
	}
	return e.room(k.cluster)
}

// room refuses when too much is on its way to the hub, in all or of one cluster.
// A cluster may have no more on its way than there is room left for the others:
// alone it gets a half, so that none shuts another out.
func (e *Exchanger) room(cluster string) error {
	free := e.config.InFlight - len(e.flights)
	if e.shares[cluster] < free {
		return nil
	}
	detail := fmt.Sprintf("%d TokenRequests are on their way to the hub, which is the limit", len(e.flights))
	if free > 0 {
		detail = fmt.Sprintf("%d TokenRequests of cluster %s are on their way to the hub, which is its share", e.shares[cluster], cluster)
	}
	return &denial.Error{Reason: denial.HubUnavailable, Detail: detail, RetryAfter: time.Second}
}

// start begins a flight, with the lock held. It does not end with the caller that began
// it: the next request finds what it brought.
func (e *Exchanger) start(ctx context.Context, k key, t policy.Target) *flight {
	f := &flight{done: make(chan struct{})}
	e.flights[k] = f
	e.shares[k.cluster]++
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Timeout)
	go func() {
		defer cancel()
		f.token, f.err = e.mint(own, k, t)
		e.mu.Lock()
		delete(e.flights, k)
		if e.shares[k.cluster]--; e.shares[k.cluster] == 0 {
			delete(e.shares, k.cluster)
		}
		e.mu.Unlock()
		close(f.done)
	}()
	return f
}

// mint gets a token from the hub and keeps it.
func (e *Exchanger) mint(ctx context.Context, k key, t policy.Target) (Token, error) {
	uid, _ := e.accounts.uid(k.target)
	now := e.config.Clock.Now()
	made, err := e.hub.mint(ctx, t, uid, now)
	e.metrics.minted(k.cluster, err)
	e.permitted(k.target.namespace, err)
	if err != nil {
		e.remember(k, err, now)
		return Token{}, err
	}
	e.save(k, t, made, now)
	return made.Token, nil
}

// maxForbidden bounds what the status shows: clusters have a say in which
// namespaces are asked for.
const maxForbidden = 100

// permitted notes whether the hub let us mint in a namespace.
func (e *Exchanger) permitted(namespace string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.forbidden, namespace)
		return
	}
	if refused := denial.Of(err); refused.Reason == denial.HubForbidden && len(e.forbidden) < maxForbidden {
		e.forbidden[namespace] = refused
	}
}

// remember keeps a denial that will not change at once.
func (e *Exchanger) remember(k key, err error, now time.Time) {
	refused := denial.Of(err)
	if refused.Reason != denial.TargetMissing && refused.Reason != denial.HubForbidden {
		return
	}
	kept := &entry{key: k, denied: refused, until: now.Add(denialLife)}
	kept.watched.Store(true)
	e.denials.add(kept)
	if refused.Reason == denial.TargetMissing {
		e.tokens.evict(k.target, always)
	}
}

// save stores a token for as long as the hub gave it from when it was asked for,
// by our clock: the hub's may differ.
func (e *Exchanger) save(k key, t policy.Target, made issued, asked time.Time) {
	life := credential.Validity{NotBefore: asked, NotAfter: asked.Add(made.Expires.Sub(made.IssuedAt))}
	kept := &entry{
		key:       k,
		token:     made.Token,
		audiences: t.Audiences,
		uid:       made.uid,
		renewAt:   credential.RenewAt(life, renewal(), k.seed()),
		until:     life.NotAfter.Add(-max(life.Lifetime()/reserveShare, reserveLeast)),
	}
	kept.unwatched = asked.Add(unwatchedLife)
	if kept.until.Before(kept.unwatched) {
		kept.unwatched = kept.until
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.current(k) {
		return
	}
	e.accounts.want(t.Namespace)
	e.tokens.add(kept)
	// The watch may have reported the target before the token was stored. What it
	// reports from now on finds it.
	if uid, ok := e.accounts.uid(k.target); ok && uid == made.uid {
		kept.watched.Store(true)
	}
}

// seed spreads the renewals of different keys, and is the same for the same key.
func (k key) seed() string {
	return k.cluster + "/" + k.account.Namespace + "/" + k.account.Name + "/" + k.account.UID + "/" + k.target.namespace + "/" + k.target.name
}
