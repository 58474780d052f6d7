package tokenauthorizer

import (
	"context"
	"net/http"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// announceEvery is how often a role that is not ready looks whether it is.
const announceEvery = 50 * time.Millisecond

// announce has health checks of gRPC say SERVING once the role is ready.
func (r *role) announce(ctx context.Context) error {
	for r.ready() != nil {
		if !pause.For(ctx, r.config.Clock, announceEvery) {
			return nil
		}
	}
	r.server.SetServing(true)
	r.config.Log.Info("Ready: each cluster's keys were asked for")
	<-ctx.Done()
	return nil
}

// ready returns nil once a configuration is loaded and each cluster's keys were
// asked for. From then on it stays so: a cluster that is added later must not
// take the others' traffic away.
func (r *role) ready() error {
	if r.engine.settled.Load() {
		return nil
	}
	if err := r.engine.loaded(); err != nil {
		return err
	}
	if r.config.Source.Workload == nil {
		if err := r.store.Ready(); err != nil {
			return err
		}
	}
	r.engine.settled.Store(true)
	return nil
}

// check is the readiness check of the manager.
func (r *role) check(request *http.Request) error {
	if err := r.server.Check(request); err != nil {
		return err
	}
	return r.ready()
}
