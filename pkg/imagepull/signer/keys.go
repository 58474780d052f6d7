package signer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// grace is how long a key must have been unknown to be retired: several reads,
// which may reach several API servers.
const grace = 5 * time.Minute

// Keys is what is known of the cluster's signing keys.
type Keys struct {
	clock clock.PassiveClock

	mu sync.RWMutex
	// seen is when a key was last published, or signed a new token.
	seen map[string]time.Time
	// published are the keys that were in a key set at any time.
	published map[string]bool
	// began is the time of the first key set: before, nothing was seen.
	began time.Time
	// signing is the key of the newest token.
	signing string
}

// NewKeys returns the knowledge of nothing.
func NewKeys(clock clock.PassiveClock) *Keys {
	return &Keys{clock: clock, seen: map[string]time.Time{}, published: map[string]bool{}}
}

// Retired reports whether tokens that are signed with a key must be replaced.
func (k *Keys) Retired(id string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	now := k.clock.Now()
	return k.settled(now) && k.unknown(id, now)
}

// Signed notes the key of a token that was just issued.
func (k *Keys) Signed(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signing, k.seen[id] = id, k.clock.Now()
}

// settled is false before the first key set has had its time, and where the newest
// token is signed with a key that was in none: then the key set is not that of
// tokens, as on EKS, or other API servers have a newer one.
func (k *Keys) settled(now time.Time) bool {
	if k.began.IsZero() || now.Sub(k.began) < grace {
		return false
	}
	return k.signing == "" || k.published[k.signing]
}

func (k *Keys) unknown(id string, now time.Time) bool {
	seen, ok := k.seen[id]
	return !ok || now.Sub(seen) >= grace
}

// publish notes a key set.
func (k *Keys) publish(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if k.began.IsZero() {
		k.began = now
	}
	for _, id := range ids {
		k.seen[id], k.published[id] = now, true
	}
}

// known returns the ids of the keys that are not retired, sorted, and false while
// none can be. It forgets the others.
func (k *Keys) known() (ids []string, settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if !k.settled(now) {
		return nil, false
	}
	maps.DeleteFunc(k.seen, func(id string, _ time.Time) bool { return k.unknown(id, now) })
	return slices.Sorted(maps.Keys(k.seen)), true
}
