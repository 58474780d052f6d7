package authenticator

import (
	"io"
	"net"
	"sync"
	"testing"
)

// front is where the API server finds the webhook: an address that stays, and
// that passes connections on to wherever the program listens, if it does.
type front struct {
	listener net.Listener

	mu      sync.Mutex
	backend string
	open    map[net.Conn]bool
	serving sync.WaitGroup
}

func newFront(tb testing.TB) *front {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &front{listener: listener, open: map[net.Conn]bool{}}
	f.serving.Go(f.accept)
	tb.Cleanup(func() {
		_ = listener.Close()
		f.lead("")
		f.serving.Wait()
	})
	return f
}

func (f *front) address() string { return f.listener.Addr().String() }

// lead has new connections go to backend, nowhere if empty, and ends the others.
func (f *front) lead(backend string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backend = backend
	for conn := range f.open {
		_ = conn.Close()
	}
}

func (f *front) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.serving.Go(func() { f.forward(conn) })
	}
}

// forward copies both ways until one of them ends.
func (f *front) forward(conn net.Conn) {
	defer f.forget(conn)
	f.mu.Lock()
	backend := f.backend
	f.open[conn] = true
	f.mu.Unlock()
	if backend == "" {
		return
	}
	behind, err := net.Dial("tcp", backend) //nolint:noctx // it ends with conn
	if err != nil {
		return
	}
	defer func() { _ = behind.Close() }()
	f.serving.Go(func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.Close()
	})
	_, _ = io.Copy(conn, behind)
}

func (f *front) forget(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
	_ = conn.Close()
}

// target is where connections go.
func (f *front) target() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.backend
}
