package signer

import (
	"maps"
	"slices"
	"sync"
)

// grace is in how many reads in a row a key must be missing to be retired: they may
// reach several API servers. Reads are counted, not minutes, so that a process that
// cannot read, or that was suspended, retires nothing.
const grace = 5

// Keys is the current knowledge of the cluster's signing keys.
type Keys struct {
	mu sync.RWMutex
	// reads counts the key sets.
	reads int
	// seen is the last read in which a key was published, or after which it signed
	// a new token.
	seen map[string]int
	// published are the keys that were in the last key set.
	published []string
	// signing is the key of the newest token. While skewed, it has been in no key set
	// since.
	signing string
	skewed  bool
}

// NewKeys returns the knowledge of nothing.
func NewKeys() *Keys { return &Keys{seen: map[string]int{}} }

// Retired reports whether tokens that are signed with a key must be replaced. Those
// that name no key never: a new one would not either.
func (k *Keys) Retired(id string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return id != "" && k.settled() && k.unknown(id)
}

// Signed notes the key of a token that was just issued, if it names one.
func (k *Keys) Signed(id string) {
	if id == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signing, k.seen[id] = id, k.reads
	k.skewed = !slices.Contains(k.published, id)
}

// settled is false before a key can have been missing often enough, and where the
// newest token is signed with a key that is in no key set: then the key set is not
// that of tokens, as with some providers, or other API servers have another one. A key that went
// after it signed the newest token is retired: the next token shows whether that was
// right.
func (k *Keys) settled() bool { return k.reads >= grace && !k.skewed }

func (k *Keys) unknown(id string) bool {
	seen, ok := k.seen[id]
	return !ok || k.reads-seen >= grace
}

// publish notes a key set.
func (k *Keys) publish(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	k.published = ids
	for _, id := range ids {
		k.seen[id] = k.reads
	}
	k.skewed = k.skewed && !slices.Contains(ids, k.signing)
}

// known returns the ids of the keys that are not retired, sorted, and false while
// none can be. It forgets the others.
func (k *Keys) known() (ids []string, settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.settled() {
		return nil, false
	}
	maps.DeleteFunc(k.seen, func(id string, _ int) bool { return k.unknown(id) })
	return slices.Sorted(maps.Keys(k.seen)), true
}
