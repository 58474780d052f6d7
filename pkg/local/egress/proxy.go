package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 10 * time.Second
)

// Proxy answers CONNECT requests.
type Proxy struct {
	// Resolve returns the destination of an address.
	Resolve func(ctx context.Context, address string) (string, error)
	Log     logr.Logger
}

// Serve answers on the listener until ctx is done. It returns when every
// connection is closed.
func (p Proxy) Serve(ctx context.Context, listener net.Listener) error {
	var tunnels sync.WaitGroup // What the HTTP server no longer knows of.
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.connect(ctx, &tunnels, w, r) }),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(listener)
	tunnels.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("egress proxy: %w", err)
	}
	return nil
}

// connect opens a tunnel, which lives until ctx, not the request's, is done.
func (p Proxy) connect(ctx context.Context, tunnels *sync.WaitGroup, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is answered here", http.StatusMethodNotAllowed)
		return
	}
	target, err := p.dial(ctx, r.RequestURI)
	if err != nil {
		p.Log.Info("The API server could not be connected", "to", r.RequestURI, "error", err.Error())
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	source, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tunnels.Go(func() {
		stop := context.AfterFunc(ctx, func() {
			_ = source.Close()
			_ = target.Close()
		})
		defer stop()
		if _, err := io.WriteString(source, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
			tunnel(source, buffered, target)
		}
		_ = source.Close()
		_ = target.Close()
	})
}

func (p Proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	resolved, err := p.Resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", resolved)
}

// tunnel copies in both directions until one side ends.
func tunnel(source net.Conn, fromSource io.Reader, target net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(target, fromSource)
		_ = target.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(source, target)
		_ = source.Close()
	})
	both.Wait()
}
