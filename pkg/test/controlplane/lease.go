package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane/pool"
)

// PoolVariable names the Unix socket of the run's pool of control planes. Without it a
// test binary has a pool of its own.
const PoolVariable = "CONTROLPLANE_POOL"

// Lease returns a control plane that this test has for itself, as if it were new:
// cluster-scoped objects included. At the end of the test it is reset for the next one
// with the same options.
func Lease(tb testing.TB, options ...Option) *ControlPlane {
	tb.Helper()
	leaveOut(tb, "a control plane")
	cp, release, err := lease(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := release(); err != nil {
			tb.Errorf("returning the control plane: %v", err)
		}
	})
	return cp
}

// Main runs the tests of a package with one control plane, which it puts into cp: they
// share it, each in namespaces, or with names, of its own. It is all that a TestMain
// does. What controllers log is dropped, unless a logger was set before. With -short there is no control plane, and what
// asks for one is skipped.
func Main(m *testing.M, cp **ControlPlane, options ...Option) {
	log.SetLogger(logr.Discard())
	flag.Parse()
	if testing.Short() {
		*cp = &ControlPlane{}
		m.Run()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout) //nolint:forbidigo // a TestMain has no other
	defer cancel()
	leased, release, err := lease(ctx, options)
	if err != nil {
		panic(err)
	}
	end := sync.OnceFunc(func() {
		if err := release(); err != nil {
			panic(err)
		}
	})
	defer end()
	defer onInterrupt(end)()
	*cp = leased
	m.Run()
}

// lease takes a control plane from the run's pool, or from this process's own.
func lease(ctx context.Context, options []Option) (cp *ControlPlane, release func() error, err error) {
	var config controlplane.Config
	for _, change := range options {
		change(&config)
	}
	socket := os.Getenv(PoolVariable)
	if socket == "" {
		return private.lease(config) //nolint:contextcheck // a pool outlives the test that asks first
	}
	grant, release, err := pool.Dial(ctx, socket, config)
	if err != nil {
		return nil, nil, err
	}
	authority, err := controlplane.OpenAuthority(filepath.Join(grant.Dir, "pki"), clock.RealClock{}.Now())
	if err == nil {
		cp, err = newControlPlane(grant.Dir, controlplane.Access{URL: grant.URL, Authority: authority, Clock: clock.RealClock{}})
	}
	if err != nil {
		_ = release()
		return nil, nil, err
	}
	return cp, release, nil
}

// private is the pool of a test binary that is run alone.
var private privatePool //nolint:gochecknoglobals // What tests share is a process's.

// privatePool exists while something is leased from it: a test binary has no later
// moment to stop what runs.
type privatePool struct {
	mu     sync.Mutex
	pool   *pool.Pool
	leases int
}

func (p *privatePool) lease(config controlplane.Config) (*ControlPlane, func() error, error) {
	p.mu.Lock()
	if p.pool == nil {
		binary, err := FindLocalkube()
		if err != nil {
			p.mu.Unlock()
			return nil, nil, err
		}
		p.pool = pool.New(binary, func(err error) { fmt.Fprintln(os.Stderr, err) })
	}
	from := p.pool
	p.leases++
	p.mu.Unlock()
	plane, err := from.Lease(config)
	if err != nil {
		p.returned()
		return nil, nil, err
	}
	release := func() error {
		from.Release(plane)
		p.returned()
		return nil
	}
	cp, err := newControlPlane(plane.Dir, plane.Access())
	if err != nil {
		_ = release()
		return nil, nil, err
	}
	return cp, release, nil
}

// returned counts a lease that is over, and ends the pool with the last one.
func (p *privatePool) returned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leases--; p.leases == 0 {
		p.pool.Close()
		p.pool = nil
	}
}

// onInterrupt calls end before the test binary follows a signal. The function it
// returns ends the watch.
func onInterrupt(end func()) (stop func()) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-over:
		case s := <-interrupted:
			end()
			signal.Reset(s)
			if s, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), s)
			}
		}
	})
	return func() {
		signal.Stop(interrupted)
		close(over)
		watch.Wait()
	}
}
