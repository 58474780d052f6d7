package node

import "sync"

// mailbox holds the latest value that was put into it.
type mailbox[T any] struct {
	mu     sync.Mutex
	value  T
	signal chan struct{}
}

func newMailbox[T any](value T) *mailbox[T] {
	m := &mailbox[T]{value: value, signal: make(chan struct{}, 1)}
	m.signal <- struct{}{}
	return m
}

// put replaces the value and wakes the receiver.
func (m *mailbox[T]) put(value T) {
	m.mu.Lock()
	m.value = value
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

func (m *mailbox[T]) get() T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}
