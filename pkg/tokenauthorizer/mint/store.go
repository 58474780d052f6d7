package mint

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/internal/fair"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// key is all that a token depends on. Two requests that
// differ in anything that a managed cluster controls never meet.
type key struct {
	cluster    string
	account    subject.Account
	target     target
	audiences  string
	expiration time.Duration
	generation uint64
}

// target is a ServiceAccount of the hub.
type target struct{ namespace, name string }

func keyOf(r *Request) key {
	return key{
		cluster:    r.Subject.Cluster,
		account:    r.Subject.Account,
		target:     target{namespace: r.Target.Namespace, name: r.Target.Name},
		audiences:  join(r.Target.Audiences),
		expiration: r.Target.Expiration,
		generation: r.Generation,
	}
}

// join is unambiguous, and free for the usual none or one.
func join(audiences []string) string {
	if len(audiences) == 0 {
		return ""
	}
	if len(audiences) == 1 && audiences[0] != "" && audiences[0][0] != '"' {
		return audiences[0]
	}
	quoted := make([]string, len(audiences))
	for i, a := range audiences {
		quoted[i] = strconv.Quote(a)
	}
	return strings.Join(quoted, ",")
}

// grant returns the target that a key's rule grants.
func (k key) grant(audiences []string) policy.Target {
	return policy.Target{Namespace: k.target.namespace, Name: k.target.name, Audiences: audiences, Expiration: k.expiration}
}

// entry is the cached result for a key: a token, or for a short time the reason for its
// absence.
type entry struct {
	key    key
	token  Token
	denied *denial.Error
	// audiences as granted, to renew with.
	audiences []string
	// uid of the target, as the token says.
	uid string
	// renewAt is when the token is renewed in the background if it is in use.
	renewAt time.Time
	// until is when the entry counts no more.
	until time.Time
	// unwatched is when it counts no more as long as no watch would report that
	// its target was deleted.
	unwatched time.Time
	watched   atomic.Bool
	used      atomic.Bool
	// failures in a row to renew, and when to try again; for the renewal alone.
	failures int
	retryAt  time.Time
}

func (e *entry) counts(now time.Time) bool {
	if e.watched.Load() {
		return now.Before(e.until)
	}
	return now.Before(e.unwatched)
}

// sweepSize is how many entries a sweep checks while requests wait.
const sweepSize = 256

// store is a bounded map of entries that knows which belong to a target.
type store struct {
	mu      sync.Mutex
	entries *fair.Cache[key, *entry]
	targets map[target]map[key]struct{}
	// inNamespace counts the targets that have entries.
	inNamespace map[string]int
	gone        func()
}

// newStore returns a store of up to limit bytes that calls gone for each removed entry.
func newStore(limit int, gone func()) *store {
	s := &store{targets: map[target]map[key]struct{}{}, inNamespace: map[string]int{}, gone: gone}
	s.entries = fair.New(limit, func(k key, _ *entry) { s.unlink(k) })
	return s
}

// entryBytes is about what an entry takes besides its texts.
const entryBytes = 768

// size is about how much memory e takes.
func (e *entry) size() int {
	n := entryBytes + len(e.token.Value) + len(e.key.audiences) + len(e.key.seed())
	if e.denied != nil {
		n += len(e.denied.Detail)
	}
	return n
}

func (s *store) get(k key) (*entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries.Get(k)
}

func (s *store) add(e *entry) {
	k := e.key
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.Remove(k) // First: what goes is unlinked.
	keys := s.targets[k.target]
	if keys == nil {
		keys = map[key]struct{}{}
		s.targets[k.target] = keys
		s.inNamespace[k.target.namespace]++
	}
	keys[k] = struct{}{}
	s.entries.Add(k.cluster, k, e, e.size())
}

// unlink is called with the lock held.
func (s *store) unlink(k key) {
	s.gone()
	keys := s.targets[k.target]
	delete(keys, k)
	if len(keys) > 0 {
		return
	}
	delete(s.targets, k.target)
	if s.inNamespace[k.target.namespace]--; s.inNamespace[k.target.namespace] <= 0 {
		delete(s.inNamespace, k.target.namespace)
	}
}

// confirm keeps a target's entries that are for the ServiceAccount with that
// UID, and forgets the others.
func (s *store) confirm(t target, uid string) {
	s.evict(t, func(e *entry) bool {
		if e.uid != uid {
			return true
		}
		e.watched.Store(true)
		return false
	})
}

// evict forgets a target's entries that drop says yes to.
func (s *store) evict(t target, drop func(*entry) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.targets[t] {
		if e, ok := s.entries.Peek(k); ok && drop(e) {
			s.entries.Remove(k)
		}
	}
}

// sweep forgets the entries that drop says yes to. Requests wait no longer than
// it takes to look at a few.
func (s *store) sweep(drop func(*entry) bool) {
	s.mu.Lock()
	all := s.entries.Values()
	s.mu.Unlock()
	for some := range slices.Chunk(all, sweepSize) {
		s.mu.Lock()
		for _, e := range some {
			if now, ok := s.entries.Peek(e.key); ok && now == e && drop(e) {
				s.entries.Remove(e.key)
			}
		}
		s.mu.Unlock()
	}
}

// covers says whether there is an entry for a target in the namespace.
func (s *store) covers(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inNamespace[namespace] > 0
}
