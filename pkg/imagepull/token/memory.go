package token

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// pauseAfterSuccess is the minimum interval between two tokens for a Secret, even if its
// data was changed: two writers that disagree must not keep the API server busy.
const pauseAfterSuccess = time.Minute

// memory knows which Secrets got a token lately, because the cache may not know yet.
type memory struct {
	mu      sync.Mutex
	written map[types.NamespacedName]write
}

// write is the last write of a Secret's token.
type write struct {
	secret types.UID
	// version is the Secret's resourceVersion after it; empty while unknown.
	version string
	at      time.Time
}

func newMemory() *memory { return &memory{written: map[types.NamespacedName]write{}} }

// blocks returns how long a Secret as the cache has it must wait for a token, and
// whether the cache is behind our own write, which it then reports by an event.
func (m *memory) blocks(secret types.NamespacedName, uid types.UID, version string, now time.Time) (wait time.Duration, stale bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.written[secret]
	if !ok || last.secret != uid { // A recreated Secret needs a token of its own at once.
		return 0, false
	}
	if order, err := resourceversion.CompareResourceVersion(version, last.version); err == nil && order < 0 {
		return 0, true
	}
	return last.at.Add(pauseAfterSuccess).Sub(now), false
}

// note notes that a Secret was written.
func (m *memory) note(secret types.NamespacedName, w write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written[secret] = w
}

// forget drops a Secret that is gone.
func (m *memory) forget(secret types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.written, secret)
}
