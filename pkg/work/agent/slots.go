package agent

import (
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
)

// slots limits the objects, of all works, whose feedback is watched.
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
