package controllers

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
)

// graceful is how long controllers may take to stop.
const graceful = time.Minute

// Setup adds controllers to a manager. The context is the context of their run.
type Setup func(context.Context, manager.Manager) error

// Options adds to options what managers in tests have in common: our scheme, no
// ports, and any number of controllers with one name.
func Options(options manager.Options) manager.Options {
	options.Scheme = scheme.New()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.HealthProbeBindAddress = "0"
	options.Controller = config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)}
	return options
}

// Run runs the controllers of setup over a connection until end is called, which
// waits for patience until everything has stopped and returns what went wrong.
func Run(tb testing.TB, connection *rest.Config, options manager.Options, patience time.Duration, setup Setup) (end func() error) {
	tb.Helper()
	options = Options(options)
	options.GracefulShutdownTimeout = &patience
	mgr, err := manager.New(connection, options)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	if err := setup(ctx, mgr); err != nil {
		cancel()
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// Start runs the controllers of setup over a connection until stop is called or
// the test ends. Every error fails the test.
func Start(tb testing.TB, connection *rest.Config, options manager.Options, setup Setup) (stop func()) {
	tb.Helper()
	end := Run(tb, connection, options, graceful, setup)
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			tb.Errorf("the controllers: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}
