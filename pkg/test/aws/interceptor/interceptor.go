package interceptor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// headerTimeout bounds how long a client may take to send its headers.
const headerTimeout = time.Minute

// Proxy is a running interceptor.
type Proxy struct {
	// URL is the value for HTTPS_PROXY.
	URL string
	// CAFile is the file with the CA in PEM, for SSL_CERT_FILE or AWS_CA_BUNDLE.
	CAFile string
	// CA is the content of CAFile.
	CA []byte

	authority *controlplane.Authority
	allowed   func(host string) bool
	tunnels   *tunnels

	mu      sync.Mutex
	refused []string
}

// Start intercepts connections to the hosts that allowed accepts and has handler
// answer their requests, until the test ends.
func Start(tb testing.TB, allowed func(host string) bool, handler http.Handler) *Proxy {
	tb.Helper()
	dir := tb.TempDir()
	ca, err := controlplane.OpenAuthority(dir, clock.RealClock{}.Now())
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{authority: ca, allowed: allowed, CA: ca.PEM(), CAFile: filepath.Join(dir, controlplane.AuthorityFile)}
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p.URL = "http://" + listener.Addr().String()
	p.tunnels = &tunnels{addr: listener.Addr(), accepted: make(chan net.Conn), closed: make(chan struct{})}
	outer := &http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: headerTimeout}
	inner := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = outer.Serve(listener) })
	serving.Go(func() { _ = inner.Serve(p.tunnels) })
	tb.Cleanup(func() {
		_ = outer.Close()
		_ = inner.Close()
		serving.Wait()
	})
	return p
}

// Refused lists the hosts that a client requested and that are not
// intercepted.
func (p *Proxy) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.refused...)
}

// connect turns a CONNECT request into a TLS connection with the host itself, as
// far as the client can see.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || r.Method != http.MethodConnect || port != "443" || !p.allowed(host) {
		p.mu.Lock()
		p.refused = append(p.refused, r.Host)
		p.mu.Unlock()
		http.Error(w, "only hosts of AWS are reached through this proxy, not "+r.Host, http.StatusForbidden)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	// A client that follows the protocol says nothing before the answer.
	if buffered.Reader.Buffered() > 0 {
		_ = conn.Close()
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	p.tunnels.add(r.Context(), tls.Server(conn, p.config(host)))
}

// config serves one host only, regardless of the name that the client requests.
func (p *Proxy) config(host string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != host {
				return nil, fmt.Errorf("connected to %s, but asked for %s", host, hello.ServerName)
			}
			cert, key, err := p.authority.Server(clock.RealClock{}.Now(), host, []string{host}, nil)
			if err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(cert, key)
			return &pair, err
		},
	}
}

// tunnels is a net.Listener of connections that were taken over.
type tunnels struct {
	addr     net.Addr
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (t *tunnels) add(ctx context.Context, conn net.Conn) {
	select {
	case t.accepted <- conn:
	case <-t.closed:
		_ = conn.Close()
	case <-ctx.Done():
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (t *tunnels) Accept() (net.Conn, error) {
	select {
	case conn := <-t.accepted:
		return conn, nil
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (t *tunnels) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// Addr implements net.Listener.
func (t *tunnels) Addr() net.Addr { return t.addr }
