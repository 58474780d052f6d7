package measure

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Meter counts the bytes between a process and an API server, by standing between
// them. It sees TLS, whose overhead counts.
type Meter struct {
	listener net.Listener
	target   string
	bytes    atomic.Int64
}

// NewMeter stands before the API server at a URL until the benchmark ends.
func NewMeter(b *testing.B, url string) *Meter {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Closed at the end.
	if err != nil {
		b.Fatal(err)
	}
	m := &Meter{listener: listener, target: strings.TrimPrefix(url, "https://")}
	b.Cleanup(func() { _ = listener.Close() })
	go m.serve()
	return m
}

// URL is where the process finds the API server.
func (m *Meter) URL() string { return "https://" + m.listener.Addr().String() }

// Bytes is how much went through so far, in both directions.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

func (m *Meter) serve() {
	for {
		from, err := m.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", m.target) //nolint:noctx // On the loopback.
		if err != nil {
			_ = from.Close()
			continue
		}
		var once sync.Once
		end := func() { once.Do(func() { _, _ = from.Close(), to.Close() }) }
		go m.copy(to, from, end)
		go m.copy(from, to, end)
	}
}

func (m *Meter) copy(to io.Writer, from io.Reader, end func()) {
	defer end()
	_, _ = io.Copy(io.MultiWriter(to, counter{&m.bytes}), from)
}

type counter struct{ bytes *atomic.Int64 }

// Write implements io.Writer.
func (c counter) Write(data []byte) (int, error) {
	c.bytes.Add(int64(len(data)))
	return len(data), nil
}
