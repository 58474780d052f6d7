package jwks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// fetchTimeout bounds one read of a source, for all that wait for it.
const fetchTimeout = 5 * time.Second

// maxDelay is by how much a read may be late.
const maxDelay = time.Second

// Run reads every source when it is due, each on its own, until ctx ends. It
// returns when nothing is under way any more, and always nil.
func (s *Store) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		looked := s.clock.Now()
		timer := s.clock.NewTimer(s.refreshDue(ctx, looked))
		// Time that passes before the timer runs, on a busy or suspended machine,
		// would make it late by as much.
		if s.clock.Since(looked) < maxDelay {
			select {
			case <-ctx.Done():
			case <-timer.C():
			case <-s.wake:
			}
		}
		timer.Stop()
	}
	s.mu.Lock()
	s.stopped = true
	for _, m := range s.members {
		m.abandon()
	}
	s.mu.Unlock()
	s.flights.Wait()
	return nil
}

// refreshDue starts to read what is due now and returns the time until something
// else is.
func (s *Store) refreshDue(ctx context.Context, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := maxLife
	for _, m := range s.members {
		switch {
		case m.next.IsZero() || m.flight != nil:
		case !now.Before(m.next):
			s.start(ctx, m)
		default:
			pause = min(pause, m.next.Sub(now))
		}
	}
	return pause
}

// start reads the source of m, unless that is being done already. What is read
// outlives its caller: a call with a deadline of 200 ms must not keep keys
// from being loaded. The caller holds the lock; the result is nil after the end
// of Run.
func (s *Store) start(ctx context.Context, m *member) *flight {
	if m.flight != nil || s.stopped {
		return m.flight
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	m.flight = f
	config := m.config
	s.flights.Go(func() {
		defer cancel()
		r := s.read(ctx, config)
		s.mu.Lock()
		m.flight = nil
		m.read = s.reads.Add(1)
		if s.members[config.Name] == m {
			s.settle(m, r)
		}
		s.mu.Unlock()
		close(f.done)
		s.nudge()
	})
	return f
}

// read reads a source. Its time begins when it is its turn, so that a source is
// not taken for broken because many others are slow.
func (s *Store) read(ctx context.Context, config Cluster) reading {
	if config.Source.kind() == sourceFile {
		return readFile(config.Source.File)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return reading{err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return fetch(ctx, config)
}

// settle takes the outcome of a read. The caller holds the lock.
func (s *Store) settle(m *member, r reading) {
	if r.err == nil {
		r.set, r.err = pinned(r.set, m.config.Pins)
	}
	news := !m.tried || (m.err == nil) != (r.err == nil)
	m.tried = true
	s.tally.refreshed(m.config.Name, r.err)
	log := s.log.WithValues("cluster", m.config.Name, "source", m.config.Source.kind())
	var changed bool
	if r.err == nil {
		changed = m.succeed(r, s.clock.Now(), log)
	} else {
		changed = m.fail(r.err, s.clock.Now(), log)
	}
	if s.members[m.config.Name] != m {
		return // Configure is about to take it.
	}
	if changed {
		s.update(m.config.Name)
	}
	if s.noticed != nil && (news || changed) {
		s.noticed(m.config.Name)
	}
}

// dropped returns the ids of the keys that are in before and not in after.
func dropped(before, after []jwk.Key) []string {
	var gone []string
	for _, key := range before {
		if !slices.ContainsFunc(after, func(k jwk.Key) bool { return same(k, key) }) {
			gone = append(gone, key.ID)
		}
	}
	return gone
}

// Ready returns nil once every source was tried, which is when it was read
// successfully or failed: one broken cluster must not keep the others' requests
// from being answered. The error says what is still missing.
func (s *Store) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hub.pending {
		return errors.New("waiting for the keys that clusters publish on the hub")
	}
	var waiting []string
	for name, m := range s.members {
		if !m.tried {
			waiting = append(waiting, name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	slices.Sort(waiting)
	return fmt.Errorf("waiting for the keys of %d of %d clusters: %s",
		len(waiting), len(s.members), strings.Join(waiting[:min(len(waiting), 10)], ", "))
}
