package addon

import (
	"sync"
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// memory is the state of one process in addition to the stored state. It saves
// requests and spaces retries; a restart can lose it.
type memory struct {
	mu         sync.Mutex
	addOns     map[string]*addOnMemory
	namespaces map[string]bool
}

func newMemory() *memory {
	return &memory{addOns: map[string]*addOnMemory{}, namespaces: map[string]bool{}}
}

// of returns the memory of an add-on. One worker at a time reconciles an add-on, so
// only the field that wake changes is shared.
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

// wake makes the next reconciliation of an add-on take a step without waiting.
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

// namespaceSeen reports whether an install namespace existed before.
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

// addOnMemory is the memory of one add-on.
type addOnMemory struct {
	wakes int
	// attempts are the registrations that need a credential, by Secret name.
	attempts map[string]*attempt
	// leaseMisses is how often in a row the lease could not be read.
	leaseMisses int
	// base is the resource version of the add-on before the last write.
	base string
	// written are the recent changes of the status, by digest.
	written map[string]written
}

// attempt is a credential being obtained.
type attempt struct {
	since time.Time
	// cause is the input that the attempt depends on; another cause starts another
	// attempt.
	cause string
	// woken is how often the add-on was woken before the last step.
	woken    int
	until    time.Time
	failures int
	state    state
	// pending is the data that was stored last, if stored is true.
	pending driver.Data
	stored  bool
	warned  string
}

type written struct {
	times int
	last  time.Time
}

// stale reports whether the cached add-on lacks the last write.
func (m *addOnMemory) stale(addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return m.base != "" && m.base == addOn.ResourceVersion
}

const (
	// conflictsBeforeBackoff is how often the same status is written before another
	// controller is assumed to overwrite it.
	conflictsBeforeBackoff = 3
	// conflictMemory is how long a change is remembered.
	conflictMemory = 30 * time.Minute
)

// conflictDelay returns how long to wait before the same changes are written again,
// after they were written so often: two agents, or an agent and a hub, that disagree
// must not keep each other busy.
func (m *addOnMemory) conflictDelay(changes []string, after int, now time.Time) time.Duration {
	backoff := credential.Backoff{First: 5 * time.Second, Most: 10 * time.Minute}
	var wait time.Duration
	for _, digest := range changes {
		before, ok := m.written[digest]
		if ok && before.times >= after && now.Sub(before.last) <= conflictMemory {
			wait = max(wait, before.last.Add(backoff.Delay(before.times-after+1, digest)).Sub(now))
		}
	}
	return wait
}

func (m *addOnMemory) record(changes []string, now time.Time) {
	for other, w := range m.written {
		if now.Sub(w.last) > conflictMemory {
			delete(m.written, other)
		}
	}
	for _, digest := range changes {
		m.written[digest] = written{times: m.written[digest].times + 1, last: now}
	}
}
