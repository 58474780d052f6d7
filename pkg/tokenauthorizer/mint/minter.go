package mint

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

const (
	// reserveShare and reserveLeast are the remaining lifetime that a cached token
	// needs to be issued again: a fifth, and two minutes.
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

// Minter mints tokens of the hub and keeps them. Its methods may be called
// from any goroutine.
type Minter struct {
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
	// forbidden are the targets for which the hub does not let us mint: a caller
	// learns a status only, and what is missing is a Role.
	forbidden map[target]*denial.Error
}

// flight is a mint that is on its way, and all who wait for it.
type flight struct {
	done chan struct{}
	// token and err are set before done is closed.
	token Token
	err   error
}

// New returns a Minter.
func New(c Config) (*Minter, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Minter{config: c, flights: map[key]*flight{}, shares: map[string]int{}, forbidden: map[target]*denial.Error{}}
	if m.hub, err = newHub(c.Hub, c.Clock); err != nil {
		return nil, err
	}
	m.metrics, err = newMetrics(c.Metrics)
	m.limits = newLimiter(c.Bytes / 8)
	m.tokens = newStore(c.Bytes, m.metrics.evicted.Inc)
	m.denials = newStore(c.Bytes/8, func() {})
	m.accounts = newAccounts(m.hub.accounts, m.seen, m.lost)
	return m, err
}

// Configure makes s the settings. Tokens that were minted under other rules, or
// for a cluster that s does not know, are forgotten.
func (m *Minter) Configure(s Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = &s
	clear(m.forbidden)
	m.limits.configure(s)
	m.accounts.pin(s.Namespaces)
	outdated := func(kept *entry) bool { return !m.current(kept.key) }
	m.tokens.sweep(outdated)
	m.denials.sweep(outdated)
}

// current says whether k is of the rules in force; it is called with the lock held.
func (m *Minter) current(k key) bool {
	if m.settings == nil {
		return true
	}
	c, ok := m.settings.cluster(k.cluster)
	return ok && c.Generation == k.generation
}

// EvictCluster forgets the tokens of a cluster that has left.
func (m *Minter) EvictCluster(name string) {
	left := func(kept *entry) bool { return kept.key.cluster == name }
	m.tokens.sweep(left)
	m.denials.sweep(left)
}

// Status describes the target namespaces, in no order.
func (m *Minter) Status() []NamespaceStatus {
	all := m.accounts.status()
	m.mu.Lock()
	defer m.mu.Unlock()
	for t, refused := range m.forbidden {
		i := slices.IndexFunc(all, func(n NamespaceStatus) bool { return n.Namespace == t.namespace })
		if i < 0 {
			all = append(all, NamespaceStatus{Namespace: t.namespace, Err: refused})
			continue
		}
		all[i].Err = refused
	}
	return all
}

// Forbidden returns the targets, as namespace/name, for which the hub does not let
// us mint, with what is missing.
func (m *Minter) Forbidden() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]string, len(m.forbidden))
	for t, refused := range m.forbidden {
		out[t.namespace+"/"+t.name] = refused.Detail
	}
	return out
}

// seen is called by the watch when a target is there.
func (m *Minter) seen(t target, uid string) {
	m.tokens.confirm(t, uid)
	m.denials.evict(t, always)
}

// lost is called by the watch when a target is gone. A token of one that was
// created in its place stays.
func (m *Minter) lost(t target, uid string) {
	m.tokens.evict(t, func(kept *entry) bool { return kept.uid == uid || kept.uid == "" })
}

func always(*entry) bool { return true }

// Mint returns a token for r, and whether it was minted for an earlier
// request. Its errors are *denial.Error.
func (m *Minter) Mint(ctx context.Context, r Request) (Token, bool, error) {
	k := keyOf(&r)
	if kept, ok := m.cached(k); ok {
		m.metrics.hits.Inc()
		return kept, true, nil
	}
	m.metrics.misses.Inc()
	f, err := m.join(ctx, k, r)
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
func (m *Minter) cached(k key) (Token, bool) {
	kept, ok := m.tokens.get(k)
	if !ok || !kept.counts(m.config.Clock.Now()) {
		return Token{}, false
	}
	kept.used.Store(true)
	return kept.token, true
}

// join returns the flight for k, a new one if there is none and the limits allow it.
func (m *Minter) join(ctx context.Context, k key, r Request) (*flight, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.flights[k]; ok {
		return f, nil
	}
	if kept, ok := m.cached(k); ok { // A flight has landed between our look and the lock.
		f := &flight{done: make(chan struct{}), token: kept}
		close(f.done)
		return f, nil
	}
	if err := m.admit(k, r); err != nil {
		m.metrics.minted(k.cluster, err)
		return nil, err
	}
	return m.start(ctx, k, r.Target), nil
}

// admit refuses what need not be asked for now.
func (m *Minter) admit(k key, r Request) error {
	now := m.config.Clock.Now()
	if known, ok := m.denials.get(k); ok && now.Before(known.until) {
		return known.denied
	}
	if err := m.limits.take(r.Subject, now); err != nil {
		return err
	}
	return m.room(k.cluster)
}

// room refuses when too much is on its way to the hub, in all or of one cluster.
// A cluster may have no more on its way than there is room left for the others:
// alone it gets a half, so that none shuts another out.
func (m *Minter) room(cluster string) error {
	free := m.config.InFlight - len(m.flights)
	if m.shares[cluster] < free {
		return nil
	}
	detail := fmt.Sprintf("%d TokenRequests are on their way to the hub, which is the limit", len(m.flights))
	if free > 0 {
		detail = fmt.Sprintf("%d TokenRequests of cluster %s are on their way to the hub, which is its share", m.shares[cluster], cluster)
	}
	return &denial.Error{Reason: denial.HubUnavailable, Detail: detail, RetryAfter: time.Second}
}

// start begins a flight, with the lock held. It does not end with the caller that began
// it: the next request finds what it brought.
func (m *Minter) start(ctx context.Context, k key, t policy.Target) *flight {
	f := &flight{done: make(chan struct{})}
	m.flights[k] = f
	m.shares[k.cluster]++
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.config.Timeout)
	go func() {
		defer cancel()
		f.token, f.err = m.request(own, k, t)
		m.mu.Lock()
		delete(m.flights, k)
		if m.shares[k.cluster]--; m.shares[k.cluster] == 0 {
			delete(m.shares, k.cluster)
		}
		m.mu.Unlock()
		close(f.done)
	}()
	return f
}

// request gets a token from the hub and keeps it.
func (m *Minter) request(ctx context.Context, k key, t policy.Target) (Token, error) {
	uid, _ := m.accounts.uid(k.target)
	now := m.config.Clock.Now()
	made, err := m.hub.mint(ctx, t, uid, now)
	m.metrics.minted(k.cluster, err)
	m.permitted(k.target, err)
	if err != nil {
		m.remember(k, err, now)
		return Token{}, err
	}
	m.save(k, t, made, now)
	return made.Token, nil
}

// maxForbidden bounds the status: clusters influence which targets are requested.
const maxForbidden = 100

// permitted notes whether the hub let us mint for a target.
func (m *Minter) permitted(t target, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.forbidden, t)
		return
	}
	if refused := denial.Of(err); refused.Reason == denial.HubForbidden && len(m.forbidden) < maxForbidden {
		m.forbidden[t] = refused
	}
}

// remember keeps a denial that will not change at once.
func (m *Minter) remember(k key, err error, now time.Time) {
	refused := denial.Of(err)
	if refused.Reason != denial.TargetMissing && refused.Reason != denial.HubForbidden {
		return
	}
	kept := &entry{key: k, denied: refused, until: now.Add(denialLife)}
	kept.watched.Store(true)
	m.denials.add(kept)
	if refused.Reason == denial.TargetMissing {
		m.tokens.evict(k.target, always)
	}
}

// save stores a token for the lifetime that the hub gave it, from the time of the
// request by our clock: the hub's may differ.
func (m *Minter) save(k key, t policy.Target, made issued, asked time.Time) {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.current(k) {
		return
	}
	m.accounts.want(t.Namespace)
	m.tokens.add(kept)
	// The watch may have reported the target before the token was stored. What it
	// reports from now on finds it.
	if uid, ok := m.accounts.uid(k.target); ok && uid == made.uid {
		kept.watched.Store(true)
	}
}

// seed spreads the renewals of different keys, and is the same for the same key.
func (k key) seed() string {
	return k.cluster + "/" + k.account.Namespace + "/" + k.account.Name + "/" + k.account.UID + "/" + k.target.namespace + "/" + k.target.name
}
