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
)

// records is the memory of the agent, by work. Losing it costs one read per object.
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
		rec = &record{uid: uid, objects: map[inventory.Key]*memory{}}
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
	return slices.Collect(maps.Keys(rec.objects))
}

// record is the memory of one work.
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
	// denials counts the passes in a row in which the API server rejected a request.
	denials int
	// holdUp names the objects that left the work and are not deleted yet.
	holdUp holdUp
	// objects has the memory of each object of the work.
	objects map[inventory.Key]*memory
}

// holdUp describes deletions that wait, as of a time; empty if none waits.
type holdUp struct {
	text string
	at   time.Time
}

// begin forgets the objects if their owner is another one, and what was observed of them
// if the generation is.
func (r *record) begin(owner types.UID, generation int64) {
	if r.owner != owner {
		r.owner = owner
		clear(r.objects)
	}
	if r.seen == generation {
		return
	}
	r.denials = 0
	for _, m := range r.objects {
		m.unobserve()
	}
}

// memory returns what is remembered of an object.
func (r *record) memory(key inventory.Key) *memory {
	m, ok := r.objects[key]
	if !ok {
		m = &memory{}
		r.objects[key] = m
	}
	return m
}

// unreport forgets what was observed of objects at a time: it could not be reported, so the
// next pass has to look again.
func (r *record) unreport(at time.Time) {
	for _, m := range r.objects {
		if m.observed.Equal(at) {
			m.unobserve()
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
