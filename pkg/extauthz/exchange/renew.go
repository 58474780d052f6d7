package exchange

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/denial"
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

// renew begins the renewals that are due, and forgets what counts no more.
func (e *Exchanger) renew(ctx context.Context) {
	now := e.config.Clock.Now()
	var due []*entry
	e.tokens.sweep(func(kept *entry) bool {
		if !kept.counts(now) {
			return true
		}
		// A token that no request used since it was minted ends.
		if kept.used.Load() && !now.Before(kept.renewAt) && !now.Before(kept.retryAt) {
			due = append(due, kept)
		}
		return false
	})
	e.denials.sweep(func(kept *entry) bool { return !now.Before(kept.until) })
	e.accounts.release(e.tokens.covers)
	for _, kept := range due {
		e.renewOne(ctx, kept, now)
	}
}

// renewOne leaves half of what may be on its way to requests, which wait.
func (e *Exchanger) renewOne(ctx context.Context, kept *entry, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := kept.key
	if _, ok := e.flights[k]; ok || len(e.flights) >= max(e.config.InFlight/2, 1) || e.room(k.cluster) != nil || !e.current(k) {
		return
	}
	kept.failures++
	kept.retryAt = now.Add(retries().Delay(kept.failures, k.seed()))
	f := e.start(ctx, k, k.grant(kept.audiences))
	go func() {
		<-f.done
		if f.err == nil {
			e.metrics.renewed.Inc()
			return
		}
		refused := denial.Of(f.err)
		e.config.Log.Info("A token could not be renewed.", "cluster", k.cluster,
			"target", k.target.namespace+"/"+k.target.name, "reason", refused.Reason, "detail", refused.Detail)
	}()
}
