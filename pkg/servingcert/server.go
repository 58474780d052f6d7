package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// Server is a runnable of a manager that serves a handler over TLS with a Holder's
// certificate. Every replica runs it.
type Server struct {
	// Address is the host and port to listen at.
	Address string
	// Handler answers.
	Handler http.Handler
	// Holder has the certificate.
	Holder *Holder
	// Drain is how long to continue serving after the context ends, while clients
	// learn that the endpoint is gone.
	Drain time.Duration
	// Clock measures Drain.
	Clock clock.WithTicker

	listening, draining atomic.Bool
}

// Timeouts of requests. An API server abandons a request after 30 seconds and closes
// an idle connection after 90; the server must not close it first, see ServeHTTP.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 5 * time.Minute
)

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, then for as long as Drain and the requests that
// are under way take.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serve the webhook at %s: %w", s.Address, err)
	}
	server := &http.Server{
		Handler: s, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Holder.Certificate},
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	s.listening.Store(true)
	defer s.listening.Store(false)
	select {
	case err := <-served:
		return fmt.Errorf("serve the webhook at %s: %w", s.Address, err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	last := context.WithoutCancel(ctx)
	pause.For(last, s.Clock, s.Drain)
	last, cancel := context.WithTimeout(last, requestTimeout)
	defer cancel()
	err = server.Shutdown(last)
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// ServeHTTP calls the handler. While the server drains, each response is the last on
// its connection: an API server does not retry a request on a connection that is
// being closed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	s.Handler.ServeHTTP(w, r)
}

// errNotListening is the error before the server listens.
var errNotListening = errors.New("the webhook does not listen yet")

// Check is a readiness check.
func (s *Server) Check(req *http.Request) error {
	if !s.listening.Load() {
		return errNotListening
	}
	return s.Holder.Check(req)
}
