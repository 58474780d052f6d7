package exchange

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
)

// turn is the time between two looks at what is due.
const turn = 5 * time.Second

// retries of a renewal that failed.
func retries() credential.Backoff {
	return credential.Backoff{First: 10 * time.Second, Most: 2 * time.Minute}
}

// Run watches the targets and renews the tokens that are in use, until ctx
// ends. An Exchanger that does not run works, and keeps its tokens for a short
// time only.
func (e *Exchanger) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { e.accounts.run(ctx) })
	ticker := e.config.Clock.NewTicker(turn)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			e.renew(ctx)
		}
	}
}

// due is an entry to renew.
type due struct {
	key   key
	entry *entry
}

// renew begins the renewals that are due, and forgets what counts no more.
func (e *Exchanger) renew(ctx context.Context) {
	now := e.config.Clock.Now()
	var all []due
	e.tokens.sweep(func(k key, kept *entry) bool {
		if !kept.counts(now) {
			return true
		}
		// A token that nobody used since it was minted ends.
		if kept.used.Load() && !now.Before(kept.renewAt) && !now.Before(kept.retryAt) {
			all = append(all, due{key: k, entry: kept})
		}
		return false
	})
	e.refusals.sweep(func(_ key, kept *entry) bool { return !now.Before(kept.until) })
	e.accounts.release(e.tokens.holds)
	for _, d := range all {
		e.renewOne(ctx, d, now)
	}
}

func (e *Exchanger) renewOne(ctx context.Context, d due, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.flights[d.key]; ok || e.room() != nil || !e.current(d.key) {
		return
	}
	d.entry.failures++
	d.entry.retryAt = now.Add(retries().Delay(d.entry.failures, d.key.seed()))
	f := e.start(ctx, d.key, d.key.grant(d.entry.audiences))
	go func() {
		<-f.done
		if f.err == nil {
			e.metrics.renewed.Inc()
			return
		}
		refused := verdict.Of(f.err)
		e.config.Log.Info("A token could not be renewed.", "cluster", d.key.cluster,
			"target", d.key.target.namespace+"/"+d.key.target.name, "reason", refused.Reason, "detail", refused.Detail)
	}()
}
