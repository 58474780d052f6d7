package jwks

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// concurrency is how many sources are read at the same time, so that a thousand
// of them do not starve each other of CPU when they are all read at the start.
const concurrency = 64

// Config is the configuration of a Store.
type Config struct {
	// Hub is set if a hub reports, by Observe, which clusters it accepts: no other
	// cluster is trusted, regardless of its source of keys. Until HubSynced no cluster is
	// trusted, and an unknown issuer is not yet known.
	Hub bool
	// Gone is called, under the lock of the Store, with each cluster that has no
	// trusted key any more; nil for no call. It must not call the Store.
	Gone func(cluster string)
	// Read is called, under the lock of the Store, with each cluster whose source was read
	// with another outcome than before: other keys, or an error and none before, or the
	// other way around. It must not call the Store; nil for no call.
	Read func(cluster string)
	// Clock is nil for the real one.
	Clock clock.Clock
	// Log gets what happens to keys.
	Log logr.Logger
}

// Store holds the keys of all clusters. Its methods may be called concurrently.
type Store struct {
	clock   clock.Clock
	log     logr.Logger
	current atomic.Pointer[View]
	gone    func(cluster string)
	noticed func(cluster string)
	misses  *cache.LRUExpireCache
	tally   tally
	// reads counts the reads of sources.
	reads atomic.Uint64
	// slots bound concurrent reads, wake has Run look at its schedule.
	slots, wake chan struct{}
	// flights are the reads that are under way.
	flights sync.WaitGroup

	mu      sync.Mutex
	members map[string]*member
	hub     hub
	index   *index
	// publish is the argument of the last Configure.
	publish func(*View)
	stopped bool
}

// New returns a Store that knows no cluster.
func New(config Config) *Store {
	s := &Store{
		clock: config.Clock, log: config.Log, gone: config.Gone, noticed: config.Read, tally: newTally(), index: newIndex(),
		slots: make(chan struct{}, concurrency), wake: make(chan struct{}, 1),
		hub: hub{decides: config.Hub, pending: config.Hub, members: make(map[string]*publication)},
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	if s.log.GetSink() == nil {
		s.log = logr.Discard()
	}
	s.misses = cache.NewLRUExpireCacheWithClock(maxMisses, s.clock)
	s.current.Store(s.view())
	return s
}

// Generation returns the generation of a cluster in the current View.
func (s *Store) Generation(cluster string) uint64 { return s.current.Load().Generation(cluster) }

// Configure replaces all clusters. Sources that stay the same keep their keys;
// keys from a source that changed are dropped. An error changes nothing; it is a
// *SharedKeyError when one key stands for two clusters under one issuer.
//
// Publish, unless it is nil, gets the View under the new configuration and every later
// one until the next Configure, in their order and before any Lookup sees it. So data
// that depends on the keys, such as the rules of their clusters, changes in one step
// with them. It is called under the lock of the Store and must not call the Store.
func (s *Store) Configure(clusters []Cluster, publish func(*View)) error {
	readings, err := check(clusters)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	members := make(map[string]*member, len(clusters))
	entries := make(map[string]Cluster)
	for _, cluster := range clusters {
		if cluster.Source.Hub {
			entries[cluster.Name] = cluster
			continue
		}
		m := s.members[cluster.Name].successor(cluster, s.clock.Now())
		if r, ok := readings[cluster.Name]; ok {
			s.settle(m, r)
		}
		members[cluster.Name] = m
	}
	for name, m := range s.members {
		if members[name] != m {
			m.abandon()
		}
		if members[name] == nil && s.hub.members[name] == nil {
			s.tally.forget(name)
		}
	}
	s.members, s.hub.entries, s.publish = members, entries, publish
	s.updateAll()
	s.nudge()
	return nil
}

// updateAll makes the current View say what members and publications do. The
// caller holds the lock.
func (s *Store) updateAll() {
	clusters := sets.KeySet(s.index.claims).Union(sets.KeySet(s.members)).Union(sets.KeySet(s.hub.members))
	s.update(clusters.UnsortedList()...)
}

// update is updateAll if nothing has changed of other clusters.
func (s *Store) update(clusters ...string) {
	claims := make(map[string]*claim, len(clusters))
	for _, cluster := range clusters {
		claims[cluster] = s.claim(cluster)
	}
	gone := s.index.apply(claims)
	before, after := s.current.Load(), s.view()
	if s.publish != nil {
		s.publish(after)
	}
	s.current.Store(after)
	close(before.replaced)
	for _, cluster := range gone {
		if s.gone != nil {
			s.gone(cluster)
		}
	}
}

// view returns the current View.
func (s *Store) view() *View {
	return &View{store: s, tables: s.index.copy(), pending: s.hub.pending, replaced: make(chan struct{})}
}

// claim returns a cluster's input to the index, nil for none.
func (s *Store) claim(cluster string) *claim {
	m := s.members[cluster]
	switch {
	case m == nil:
		return s.hub.claim(cluster)
	case s.hub.denied(cluster).Reason != "":
		return nil
	default:
		return m.claim()
	}
}

// nudge has Run look at its schedule again.
func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Status describes every cluster with a source of its own, every one that is
// configured to publish its keys on the hub and every one that does, by name.
func (s *Store) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, 0, len(s.members)+len(s.hub.members))
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		status := s.members[name].status()
		if denied := s.hub.denied(name); denied.Reason != "" && !s.hub.pending {
			status.KeyIDs, status.Err = nil, errors.New(denied.Message)
		}
		all = append(all, status)
	}
	all = append(all, s.hub.status(s.members)...)
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Cluster, b.Cluster) })
	for i := range all {
		s.withoutShared(&all[i])
	}
	return all
}

// StatusOf is Status for one cluster with a source of its own; false if there is none.
func (s *Store) StatusOf(cluster string) (Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.members[cluster]
	if !ok {
		return Status{}, false
	}
	status := m.status()
	s.withoutShared(&status)
	return status, true
}

// withoutShared takes out the keys that are refused because other clusters have them too.
func (s *Store) withoutShared(status *Status) {
	status.Shared = slices.Clone(s.index.refused(status.Cluster))
	status.KeyIDs = slices.DeleteFunc(status.KeyIDs, func(id string) bool {
		return slices.ContainsFunc(status.Shared, func(x SharedKeyError) bool { return x.KeyID == id })
	})
}

// jitter spreads what would happen at the same time: d, give or take a tenth.
func jitter(d time.Duration) time.Duration { return wait.Jitter(d-d/10, 2.0/9) }
