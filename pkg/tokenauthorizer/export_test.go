package tokenauthorizer

import (
	"context"
	"errors"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// Reporter is the reporter of a replica, for tests.
type Reporter struct{ *reporter }

// NewReporter returns one.
func NewReporter(c client.Client, clock clock.WithTicker) Reporter {
	r := newReporter(clock)
	r.client = c
	return Reporter{r}
}

// Count counts a decision.
func (r Reporter) Count(cluster string, err error) { r.count(cluster, err) }

// Flush reports what is due.
func (r Reporter) Flush(ctx context.Context) { r.flush(ctx) }

// Parts are the parts of a role that decide, without what feeds and serves them.
type Parts struct{ role *role }

// NewParts returns those of a role.
func NewParts(c Config) (Parts, error) {
	r, err := newRole(c)
	return Parts{r}, err
}

// Configure takes over a configuration.
func (p Parts) Configure(c *config.Config) error {
	p.role.engine.changed(c, nil)
	return p.role.engine.problem
}

// Observe takes what the hub knows about a cluster.
func (p Parts) Observe(c keytrust.Candidate) error { return p.role.store.Observe(c) }

// HubSynced ends the beginning.
func (p Parts) HubSynced() { p.role.store.HubSynced() }

// Authorize decides a request.
func (p Parts) Authorize(ctx context.Context, token string) (authorizer.Decision, error) {
	return p.role.authorizer.Authorize(ctx, authorizer.Request{Token: token})
}

// Follow feeds a store with what the hub of mgr has.
func Follow(mgr manager.Manager, store *jwks.Store) error {
	p := &publications{hub: mgr.GetCache(), store: store}
	return errors.Join(p.follow(mgr), mgr.Add(manager.RunnableFunc(p.begin)))
}

// What bounds the writes.
const (
	ReportEvery = reportEvery
	MaxReports  = maxReports
)
