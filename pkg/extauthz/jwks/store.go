package jwks

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// concurrency is how many sources are read at the same time, so that a thousand
// of them do not starve each other of CPU when they are all read at the start.
const concurrency = 64

// Config is what a Store needs.
type Config struct {
	// Hub is set if keys published on the hub are to come: until HubSynced, an
	// issuer that is not known is not yet known.
	Hub bool
	// Clock is nil for the real one.
	Clock clock.Clock
	// Log gets what happens to keys.
	Log logr.Logger
}

// Store holds the keys of all clusters. Its methods may be called concurrently.
type Store struct {
	clock   clock.Clock
	log     logr.Logger
	current atomic.Pointer[snapshot]
	misses  *misses
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
	stopped bool
}

// New returns a Store that knows no cluster.
func New(config Config) *Store {
	s := &Store{
		clock: config.Clock, log: config.Log, misses: newMisses(),
		slots: make(chan struct{}, concurrency), wake: make(chan struct{}, 1),
		hub: hub{pending: config.Hub, published: make(map[string]*publication)},
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	if s.log.GetSink() == nil {
		s.log = logr.Discard()
	}
	s.current.Store(&snapshot{pending: config.Hub, replaced: make(chan struct{})})
	return s
}

// Generation moves whenever a key or a cluster is no longer believed. What was
// verified under one generation must be verified again under another.
func (s *Store) Generation() uint64 { return s.current.Load().generation }

// Configure replaces all clusters. Sources that stay the same keep their keys;
// keys from a source that changed are dropped. An error changes nothing; it is a
// *SharedKeyError when one key stands for two clusters under one issuer.
func (s *Store) Configure(clusters []Cluster) error {
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
	}
	s.members, s.hub.entries = members, entries
	s.rebuild()
	s.nudge()
	s.tally.retain(func(cluster string) bool { return members[cluster] != nil || s.hub.published[cluster] != nil })
	return nil
}

// rebuild makes the current snapshot say what members and publications do. The
// caller holds the lock.
func (s *Store) rebuild() {
	claims := s.hub.claims(s.members)
	for _, m := range s.members {
		claims = append(claims, m.claim())
	}
	slices.SortFunc(claims, func(a, b claim) int { return strings.Compare(a.cluster, b.cluster) })
	before := s.current.Load()
	after := &snapshot{generation: before.generation, pending: s.hub.pending, replaced: make(chan struct{})}
	after.issuers, s.refused = build(claims)
	if lost(before.issuers, after.issuers) {
		after.generation++
	}
	s.current.Store(after)
	close(before.replaced)
}

// nudge has Run look at its schedule again.
func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Status tells about every cluster with a source of its own, every one that is
// configured to publish its keys on the hub and every one that does, by name.
func (s *Store) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, 0, len(s.members)+len(s.hub.published))
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		all = append(all, s.members[name].status())
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
