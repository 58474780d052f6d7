package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
)

// Authorizer decides about requests.
type Authorizer interface {
	// Authorize returns what a request may continue with, or an error with a
	// denial.Error in its chain. It is called for every request, also for one
	// whose token is empty, so that it can record it.
	Authorize(ctx context.Context, request authorizer.Request) (authorizer.Decision, error)
}

// Config is the configuration of a Server.
type Config struct {
	// Authorizer decides.
	Authorizer Authorizer
	// Endpoints are where to listen.
	Endpoints Endpoints
	// TLS secures the TCP endpoints; nil leaves them in plain text, which is for
	// a proxy in the same Pod.
	TLS *TLS
	// Answers are the deployment's settings for answers.
	Answers Answers
	// Exchange serves RFC 8693 under /token of the HTTP endpoint.
	Exchange bool
	// Drain is how long to serve after the end was requested, while health
	// checks send proxies elsewhere.
	Drain time.Duration
	// Clock measures Drain.
	Clock clock.WithTicker
	// Log takes what concerns the server; decisions are the authorizer's to log.
	Log logr.Logger
}

// Endpoints are the addresses of a Server; an empty one is not served.
type Endpoints struct {
	// GRPC and HTTP are host:port.
	GRPC, HTTP string
	// Unix is the path of a socket that serves gRPC.
	Unix string
}

// How long a client of the HTTP endpoint may take, and how long an idle
// connection is kept, which the proxy should be the one to close.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 30 * time.Second
	idleTimeout    = 5 * time.Minute
	// stopTimeout is the time for requests in progress after the drain.
	stopTimeout = 10 * time.Second
)

// Server serves all protocols. It is a runnable of a manager.
type Server struct {
	config       Config
	certificates *certificates
	health       *health.Server
	grpc         *grpc.Server
	http         *http.Server
	draining     atomic.Bool

	mu        sync.Mutex
	listeners listeners
}

// listeners are open endpoints, nil for those that are not used.
type listeners struct {
	grpc, http, unix net.Listener
}

// New returns a Server that does not listen yet, and whose health is
// NOT_SERVING until SetServing says otherwise.
func New(config Config) (*Server, error) {
	s := &Server{config: config, health: health.NewServer()}
	if config.Endpoints == (Endpoints{}) {
		return nil, errors.New("there is nothing to serve: give a port of gRPC or HTTP, or a Unix socket")
	}
	if config.Exchange && config.Endpoints.HTTP == "" {
		return nil, errors.New("token exchange is served over HTTP: give its port")
	}
	if config.TLS != nil {
		loaded, err := loadCertificates(*config.TLS, config.Clock, config.Log)
		if err != nil {
			return nil, err
		}
		s.certificates = loaded
	}
	s.http = s.newHTTP()
	s.SetServing(false)
	return s, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Listen opens the endpoints, so that a port that is taken is found before
// anything else begins. Start does it if it was not done.
func (s *Server) Listen(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners != (listeners{}) {
		return nil
	}
	defer func() {
		if err != nil {
			s.closeListeners()
		}
	}()
	var lc net.ListenConfig
	if address := s.config.Endpoints.GRPC; address != "" {
		if s.listeners.grpc, err = lc.Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("serve gRPC at %s: %w", address, err)
		}
	}
	if address := s.config.Endpoints.HTTP; address != "" {
		if s.listeners.http, err = lc.Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("serve HTTP at %s: %w", address, err)
		}
	}
	if path := s.config.Endpoints.Unix; path != "" {
		if s.listeners.unix, err = listenUnix(ctx, path); err != nil {
			return fmt.Errorf("serve gRPC at the socket %s: %w", path, err)
		}
	}
	return nil
}

func (s *Server) closeListeners() {
	for _, l := range []net.Listener{s.listeners.grpc, s.listeners.http, s.listeners.unix} {
		if l != nil {
			_ = l.Close() // It served nothing.
		}
	}
	s.listeners = listeners{}
}

// Addresses returns where the Server listens, with the ports that it got.
func (s *Server) Addresses() Endpoints {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := Endpoints{Unix: s.config.Endpoints.Unix}
	if s.listeners.grpc != nil {
		at.GRPC = s.listeners.grpc.Addr().String()
	}
	if s.listeners.http != nil {
		at.HTTP = s.listeners.http.Addr().String()
	}
	return at
}

// Start serves until ctx ends, then for as long as Drain and the requests that
// are under way take.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	open := s.listeners
	s.mu.Unlock()
	s.grpc = s.newGRPC() // Its workers run from now on.
	all, serving := errgroup.WithContext(ctx)
	serve := func(l net.Listener, serve func(net.Listener) error) {
		if l != nil {
			all.Go(func() error { return serve(l) })
		}
	}
	serve(open.grpc, s.serveGRPC)
	serve(open.unix, s.serveGRPC)
	serve(open.http, s.serveHTTP)
	all.Go(func() error {
		<-serving.Done()
		drain := s.config.Drain
		if ctx.Err() == nil { // Nothing ends by itself but by a fault.
			drain = 0
		}
		return s.stop(context.WithoutCancel(ctx), drain)
	})
	return all.Wait()
}

// stop ends the serving: health first, connections last.
func (s *Server) stop(ctx context.Context, drain time.Duration) error {
	s.draining.Store(true)
	s.health.Shutdown()
	if drain > 0 {
		pause.For(ctx, s.config.Clock, drain)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	// Streams of health watches end only when their clients want.
	defer context.AfterFunc(ctx, s.grpc.Stop)()
	err := s.http.Shutdown(ctx)
	s.grpc.GracefulStop()
	return err
}

// serveGRPC serves until the end; one that came before the serving began is no fault.
func (s *Server) serveGRPC(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

func (s *Server) serveHTTP(l net.Listener) error {
	serve := s.http.Serve
	if s.certificates != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// errDraining says that the server ends.
var errDraining = errors.New("the server drains")

// errNotListening says that the server has not begun.
var errNotListening = errors.New("the server does not listen yet")

// Check is a readiness check.
func (s *Server) Check(*http.Request) error {
	if s.draining.Load() {
		return errDraining
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == (listeners{}) {
		return errNotListening
	}
	return nil
}
