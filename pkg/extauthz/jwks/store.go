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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// concurrency is how many sources are read at the same time, so that a thousand
// of them do not starve each other of CPU when they are all read at the start.
const concurrency = 64

// Config is what a Store needs.
type Config struct {
	// Hub is set if a hub reports, by Observe, which clusters it accepts: others do
	// not count, wherever their keys come from. Until HubSynced none does, and an
	// issuer that is not known is not yet known.
	Hub bool
	// Gone is called, under the lock of the Store, with each cluster of which no
	// key counts any more; nil for no call. It must not call the Store.
	Gone func(cluster string)
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
	refused map[string][]SharedKeyError
	// publish is what Configure was given last.
	publish func(*View)
	// generation is the last that was given to a cluster.
	generation uint64
	stopped    bool
}

// New returns a Store that knows no cluster.
func New(config Config) *Store {
	s := &Store{
		clock: config.Clock, log: config.Log, gone: config.Gone, tally: newTally(),
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
	s.current.Store(&View{store: s, pending: config.Hub, replaced: make(chan struct{})})
	return s
}

// Generations are those of the current View.
func (s *Store) Generations() map[string]uint64 { return s.current.Load().Generations() }

// Configure replaces all clusters. Sources that stay the same keep their keys;
// keys from a source that changed are dropped. An error changes nothing; it is a
// *SharedKeyError when one key stands for two clusters under one issuer.
//
// Publish, unless it is nil, gets the View under the new configuration and every
// later one until the next Configure, in their order and before any Lookup sees
// it. So what goes with the keys, such as the rules of their clusters, changes in
// one step with them. It is called under the lock of the Store and must not call
// the Store.
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
	s.rebuild()
	s.nudge()
	return nil
}

// rebuild makes the current View say what members and publications do. The
// caller holds the lock.
func (s *Store) rebuild() {
	claims := s.hub.claims(s.members)
	for name, m := range s.members {
		if s.hub.denied(name).Reason == "" {
			claims = append(claims, m.claim())
		}
	}
	slices.SortFunc(claims, func(a, b claim) int { return strings.Compare(a.cluster, b.cluster) })
	before := s.current.Load()
	after := &View{store: s, generations: make(map[string]uint64, len(claims)), pending: s.hub.pending, replaced: make(chan struct{})}
	after.issuers, s.refused = build(claims)
	moved := lost(before.issuers, after.issuers)
	for _, c := range claims {
		generation := before.generations[c.cluster]
		if generation == 0 || moved[c.cluster] {
			s.generation++
			generation = s.generation
		}
		after.generations[c.cluster] = generation
	}
	if s.publish != nil {
		s.publish(after)
	}
	s.current.Store(after)
	close(before.replaced)
	for cluster := range before.generations {
		if s.gone != nil && after.generations[cluster] == 0 {
			s.gone(cluster)
		}
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
		all[i].Shared = slices.Clone(s.refused[all[i].Cluster])
		all[i].KeyIDs = slices.DeleteFunc(all[i].KeyIDs, func(id string) bool {
			return slices.ContainsFunc(all[i].Shared, func(x SharedKeyError) bool { return x.KeyID == id })
		})
	}
	return all
}

// jitter spreads what would happen at the same time: d, give or take a tenth.
func jitter(d time.Duration) time.Duration { return wait.Jitter(d-d/10, 2.0/9) }
