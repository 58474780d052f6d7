package mint

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// turn is the time between two looks at what is due.
const turn = 5 * time.Second

// retries of a renewal that failed.
func retries() credential.Backoff {
	return credential.Backoff{First: 10 * time.Second, Most: 2 * time.Minute}
}

// Run watches the targets and renews the tokens that are in use, until ctx
// ends. A Minter that does not run works, and keeps its tokens for a short
// time only.
func (m *Minter) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { m.accounts.run(ctx) })
	for pause.For(ctx, m.config.Clock, turn) {
		m.renew(ctx)
	}
	return nil
}

// renew begins the renewals that are due, and forgets what counts no more.
func (m *Minter) renew(ctx context.Context) {
	now := m.config.Clock.Now()
	var due []*entry
	m.tokens.sweep(func(kept *entry) bool {
		if !kept.counts(now) {
			return true
		}
		// A token that no request used since it was minted ends.
		if kept.used.Load() && !now.Before(kept.renewAt) && !now.Before(kept.retryAt) {
			due = append(due, kept)
		}
		return false
	})
	m.denials.sweep(func(kept *entry) bool { return !now.Before(kept.until) })
	m.accounts.release(m.tokens.covers)
	for _, kept := range due {
		m.renewOne(ctx, kept, now)
	}
}

// renewOne leaves half of what may be on its way to requests, which wait.
func (m *Minter) renewOne(ctx context.Context, kept *entry, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := kept.key
	if _, ok := m.flights[k]; ok || len(m.flights) >= max(m.config.InFlight/2, 1) || m.room(k.cluster) != nil || !m.current(k) {
		return
	}
	kept.failures++
	kept.retryAt = now.Add(retries().Delay(kept.failures, k.seed()))
	f := m.start(ctx, k, k.grant(kept.audiences))
	go func() {
		<-f.done
		if f.err == nil {
			m.metrics.renewed.Inc()
			return
		}
		refused := denial.Of(f.err)
		m.config.Log.Info("A token could not be renewed.", "cluster", k.cluster,
			"target", k.target.namespace+"/"+k.target.name, "reason", refused.Reason, "detail", refused.Detail)
	}()
}
