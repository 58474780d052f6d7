package jwks

import (
	"context"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/metric"
)

// What is remembered of key ids that are not known.
const (
	maxMisses = 1024
	// unknownFor is how long an unknown key id costs no read.
	unknownFor = 30 * time.Second
	// unavailableFor is how long a failed read is not tried again for it.
	unavailableFor = time.Second
	// maxIDBytes is longer than every id of a key that is taken.
	maxIDBytes = 256
	// maxShown bounds what a caller can write into our logs.
	maxShown = 128
)

// Lookup returns the keys that may have signed a token of issuer under kid,
// mostly one; several if clusters with one issuer use the same key id for
// different keys. The caller must not change the slice.
//
// A key that is known costs no lock and no allocation. One that is not has its
// possible sources read again, once for all callers and within limits, and
// Lookup waits for that as long as ctx allows. Errors are *denial.Error:
// UnknownIssuer, UnknownKey, AmbiguousKey, KeysUnavailable if the keys could not
// be read, Deadline if ctx ended first.
func (s *Store) Lookup(ctx context.Context, issuer, kid string) ([]Key, error) {
	return s.current.Load().Lookup(ctx, issuer, kid)
}

// Lookup is Store.Lookup, for the keys of v. If v does not have a key yet, a later View
// may.
func (v *View) Lookup(ctx context.Context, issuer, kid string) ([]Key, error) {
	if keys := v.find(issuer, kid); len(keys) > 0 {
		return keys, nil
	}
	return v.store.search(ctx, issuer, kid)
}

// search is Lookup for a key that was not there a moment ago.
func (s *Store) search(ctx context.Context, issuer, kid string) ([]Key, error) {
	// First this, then the View: a source that was read after it needs not
	// be read again for this caller.
	begun := s.reads.Load()
	snap := s.current.Load()
	if keys := snap.find(issuer, kid); len(keys) > 0 {
		return keys, nil
	}
	if err := s.settled(snap, issuer, kid); err != nil {
		return nil, err
	}
	for _, f := range s.ask(ctx, snap, issuer, begun) {
		keys, err := s.await(ctx, f, issuer, kid)
		if err != nil || len(keys) > 0 {
			return keys, err
		}
	}
	snap = s.current.Load()
	if keys := snap.find(issuer, kid); len(keys) > 0 {
		return keys, nil
	}
	if problem := s.problem(snap, issuer); problem != nil {
		s.remember(issuer, kid, false, unavailableFor)
		return nil, problem
	}
	s.remember(issuer, kid, true, unknownFor)
	return nil, s.unknown(snap, issuer, kid)
}

// settled refuses the keys about which nothing new can be learned.
func (s *Store) settled(snap *View, issuer, kid string) error {
	known := snap.knows(issuer)
	switch shared := snap.ambiguous(issuer, kid); {
	case !known && snap.pending:
		return unavailable("what clusters publish on the hub is not known yet")
	case !known:
		return denial.New(denial.UnknownIssuer, "no cluster has the issuer %q", shown(issuer))
	case shared != nil:
		return denial.New(denial.AmbiguousKey, "%w", shared)
	case kid == "", len(kid) > maxIDBytes:
		return s.unknown(snap, issuer, kid)
	}
	missed, ok := s.misses.Get(missID{issuer, kid})
	if !ok {
		return nil
	}
	if unknown, _ := missed.(bool); unknown {
		return s.unknown(snap, issuer, kid)
	}
	return unavailable("keys of issuer %q could not be read a moment ago", shown(issuer))
}

// ask has the sources of issuer read again that were not since begun, as far as
// their limits allow, and returns what is under way.
func (s *Store) ask(ctx context.Context, snap *View, issuer string, begun uint64) []*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var flights []*flight
	for _, m := range snap.remotes.under(issuer) {
		if s.members[m.config.Name] != m || m.read > begun {
			continue
		}
		if m.flight == nil && !m.limiter.AllowN(s.clock.Now(), 1) {
			continue
		}
		if f := s.start(ctx, m); f != nil {
			flights = append(flights, f)
		}
	}
	return flights
}

// await waits for f, or until any source has brought the key.
func (s *Store) await(ctx context.Context, f *flight, issuer, kid string) ([]Key, error) {
	for {
		snap := s.current.Load()
		if keys := snap.find(issuer, kid); len(keys) > 0 {
			return keys, nil
		}
		select {
		case <-f.done:
			return nil, nil
		case <-snap.replaced:
		case <-ctx.Done():
			denied := denial.New(denial.Deadline, "the keys of issuer %q were still being read: %w", shown(issuer), ctx.Err())
			denied.RetryAfter = time.Second
			return nil, denied
		}
	}
}

// problem returns why it is not known whether issuer has a key that is not
// known, or nil if one can.
func (s *Store) problem(snap *View, issuer string) error {
	if cluster := snap.keyless(issuer); cluster != "" {
		return unavailable("there are no keys of cluster %s", cluster)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range snap.remotes.under(issuer) {
		if m.err != nil {
			return unavailable("the keys of cluster %s could not be refreshed: %w", m.config.Name, m.err)
		}
	}
	return nil
}

// unknown counts and returns the denial of a key id.
func (s *Store) unknown(snap *View, issuer, kid string) error {
	cluster := metric.UnknownCluster
	if only, ok := snap.only(issuer); ok {
		cluster = only
	}
	s.tally.missed.WithLabelValues(cluster).Inc()
	return denial.New(denial.UnknownKey, "the issuer %q has no key %q: if the cluster's signing key is new, its key set must be published",
		shown(issuer), shown(kid))
}

func unavailable(format string, args ...any) error {
	denied := denial.New(denial.KeysUnavailable, format, args...)
	denied.RetryAfter = time.Second
	return denied
}

// shown returns what of a word from outside may go into a message.
func shown(word string) string { return excerpt.Of(word, maxShown) }

// missID is a key id whose lookup failed. Its value is whether the key id is unknown:
// false if the lookup was not possible.
type missID struct{ issuer, kid string }

// remember keeps junk from costing reads. It copies the strings, which may be parts
// of a token.
func (s *Store) remember(issuer, kid string, unknown bool, until time.Duration) {
	s.misses.Add(missID{strings.Clone(issuer), strings.Clone(kid)}, unknown, until)
}
