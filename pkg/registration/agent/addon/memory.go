package addon

import (
	"sync"
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// memory is what one process knows beside what is stored: it saves requests and
// keeps apart what must not follow each other quickly. Losing it harms nothing.
type memory struct {
	mu         sync.Mutex
	addOns     map[string]*addOnMemory
	namespaces map[string]bool
}

func newMemory() *memory {
	return &memory{addOns: map[string]*addOnMemory{}, namespaces: map[string]bool{}}
}

// of returns what is known about an add-on. The queue gives an add-on to one
// worker at a time, so only what wake touches is shared.
func (m *memory) of(addOn string) *addOnMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.addOns[addOn]
	if !ok {
		known = &addOnMemory{attempts: map[string]*attempt{}, written: map[string]written{}}
		m.addOns[addOn] = known
	}
	return known
}

func (m *memory) knows(addOn string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.addOns[addOn]
	return ok
}

func (m *memory) drop(addOn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.addOns, addOn)
}

// wake makes the next look at an add-on take a step at once, whatever was
// being waited for.
func (m *memory) wake(addOn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.addOns[addOn]; ok {
		known.wakes++
	}
}

func (m *memory) woken(known *addOnMemory) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return known.wakes
}

// namespaceSeen reports whether an install namespace was there before.
func (m *memory) namespaceSeen(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.namespaces[name]
}

func (m *memory) sawNamespace(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.namespaces[name] = true
}

func (m *memory) forgetNamespace(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, name)
}

// addOnMemory is what is known about one add-on.
type addOnMemory struct {
	wakes int
	// attempts are the registrations that need a credential, by Secret name.
	attempts map[string]*attempt
	// leaseMisses is how often in a row the add-on's lease was not known.
	leaseMisses int
	// base is the version of the add-on that the last write was made from.
	base string
	// written is what was said in the status lately, by its digest.
	written map[string]written
}

// attempt is a credential being obtained.
type attempt struct {
	since time.Time
	// cause is what it depends on; with another cause it is another attempt.
	cause string
	// woken is how often the add-on had been woken at the last step.
	woken    int
	until    time.Time
	failures int
	state    state
	// pending is what was stored last, if known.
	pending driver.Data
	stored  bool
	warned  string
}

type written struct {
	times int
	last  time.Time
}

// stale reports whether the add-on as read is the one that the last write has
// changed already.
func (m *addOnMemory) stale(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return m.base != "" && m.base == addOn.ResourceVersion
}

const (
	// quarrelAfter is how often the same status may be written in short order
	// before somebody is taken to write the opposite all the time.
	quarrelAfter = 3
	// quarrelMemory is how long a status is remembered.
	quarrelMemory = 30 * time.Minute
)

// contest returns how long to wait before the same is said once more, after it
// was said so often: two agents, or an agent and a hub, that want different
// things must not keep each other busy.
func (m *addOnMemory) contest(said []string, after int, now time.Time) time.Duration {
	backoff := credential.Backoff{First: 5 * time.Second, Most: 10 * time.Minute}
	var wait time.Duration
	for _, digest := range said {
		before, ok := m.written[digest]
		if ok && before.times >= after && now.Sub(before.last) <= quarrelMemory {
			wait = max(wait, before.last.Add(backoff.Delay(before.times-after+1, digest)).Sub(now))
		}
	}
	return wait
}

func (m *addOnMemory) say(said []string, now time.Time) {
	for other, w := range m.written {
		if now.Sub(w.last) > quarrelMemory {
			delete(m.written, other)
		}
	}
	for _, digest := range said {
		m.written[digest] = written{times: m.written[digest].times + 1, last: now}
	}
}
