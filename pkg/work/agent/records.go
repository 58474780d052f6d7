package agent

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
)

// Repairs of an object that another writer keeps changing back are spread over time.
const (
	firstRepair = time.Second
	mostRepair  = 4 * time.Minute
	// calm is after how long without a repair the next one is the first again.
	calm = 10 * time.Minute
)

// records is what the agent remembers of each work. Losing it costs one read per object.
type records struct {
	mu   sync.Mutex
	all  map[string]*record
	seed maphash.Seed
}

func newRecords() *records { return &records{all: map[string]*record{}, seed: maphash.MakeSeed()} }

// of returns the record of a work, which only the work's reconciliation uses. A work of
// another UID begins again.
func (r *records) of(name string, uid types.UID) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.all[name]
	if !ok || rec.uid != uid {
		rec = &record{uid: uid, marks: map[inventory.Key]*mark{}}
		r.all[name] = rec
	}
	return rec
}

// forget drops the record of a work, and returns the objects that it had.
func (r *records) forget(name string) []inventory.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.all[name]
	if !ok {
		return nil
	}
	delete(r.all, name)
	return slices.Collect(maps.Keys(rec.marks))
}

// record is what is remembered of one work.
type record struct {
	uid types.UID
	// written is the resource version that our last write of the work left, and
	// applied that of its AppliedManifestWork.
	written, applied string
	// owner is the UID of the AppliedManifestWork.
	owner types.UID
	// seen is the generation whose rules were evaluated last, and quiet the one that was
	// applied and reported without a problem.
	seen, quiet int64
	// denials counts the passes in a row in which the API server refused something.
	denials int
	// holdUp is what holds the deletion of objects up that left the work.
	holdUp holdUp
	marks  map[inventory.Key]*mark
}

// holdUp is what held deletions up at a time; empty for nothing.
type holdUp struct {
	text string
	at   time.Time
}

// begin forgets the objects if their owner is another one, and what was observed of them
// if the generation is.
func (r *record) begin(owner types.UID, generation int64) {
	if r.owner != owner {
		r.owner = owner
		clear(r.marks)
	}
	if r.seen == generation {
		return
	}
	r.denials = 0
	for _, m := range r.marks {
		m.version, m.observed = "", time.Time{}
	}
}

// unreport forgets what was observed of objects at a time: it could not be reported, so the
// next pass has to look again.
func (r *record) unreport(at time.Time) {
	for _, m := range r.marks {
		if m.observed.Equal(at) {
			m.version, m.observed = "", time.Time{}
		}
	}
}

// stale reports whether a cached object is older than our last write of it.
func stale(cached, written string) bool {
	if written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached, written)
	return err == nil && order < 0
}

// mark is what is remembered of one object.
type mark struct {
	// desired digests everything that decides what is applied, and revision is the
	// object's when that had been applied.
	desired, revision uint64
	// version is the object's when its status was looked at, at observed.
	version  string
	observed time.Time
	// interval is how soon it may be looked at again after a change, and recheck how soon
	// without one; zero for never.
	interval, recheck time.Duration
	// explained is when it was last found out why the object is not ready.
	explained time.Time
	// reviewed is when the executor was last found to have its permissions.
	reviewed time.Time
	// gap is the current least time between repairs.
	gap      time.Duration
	repaired time.Time
	// contests are the fields that another writer has changed back after a repair.
	contests []strategy.Contest
}

// lookAt returns when the status of the object, which has a version now, is to be looked at;
// false for never.
func (m *mark) lookAt(version string) (time.Time, bool) {
	if m.version != version {
		return m.observed.Add(m.interval), true
	}
	return m.observed.Add(m.recheck), m.recheck > 0
}

// settled reports whether nothing needs to be done to an object.
func (m *mark) settled(desired uint64, object inventory.Object, exists bool) bool {
	return exists && m.desired == desired && m.revision == object.Revision
}

// repairAt returns when the object may be repaired.
func (m *mark) repairAt() time.Time {
	if m.gap == 0 {
		return time.Time{}
	}
	return m.repaired.Add(m.gap)
}

// repair records a repair of the object, and which fields others had changed. After the
// first one, they change back what was repaired.
func (m *mark) repair(now time.Time, contests []strategy.Contest) {
	switch {
	case m.gap == 0 || now.Sub(m.repaired) > calm:
		m.gap = firstRepair
		m.contests = nil
	default:
		m.gap = min(2*m.gap, mostRepair)
		m.contests = contests
	}
	m.repaired = now
}

// contestedFor returns how much longer it is reported that others change fields back; zero
// or less for no longer.
func (m *mark) contestedFor(now time.Time) time.Duration {
	if len(m.contests) == 0 {
		return 0
	}
	return m.repaired.Add(calm).Sub(now)
}

// slots are the objects whose feedback may be watched.
type slots struct {
	most int

	mu    sync.Mutex
	taken map[inventory.Key]bool
}

// take reports whether an object has, or gets, a slot.
func (s *slots) take(key inventory.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[key] {
		return true
	}
	if len(s.taken) >= s.most {
		return false
	}
	if s.taken == nil {
		s.taken = map[inventory.Key]bool{}
	}
	s.taken[key] = true
	return true
}

func (s *slots) free(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, key)
}
