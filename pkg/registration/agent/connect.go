package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/lease"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
)

// unacceptedPolls is the back-off with which a cluster polls for its acceptance: until
// then it may not watch its ManagedCluster.
func unacceptedPolls() credential.Backoff {
	return credential.Backoff{First: 300 * time.Millisecond, Most: 15 * time.Second}
}

// unauthorizedGrace is how long the hub must answer "unauthorized" before the
// credential is replaced: an API server that starts may do so for a moment.
const unauthorizedGrace = 30 * time.Second

// presenceRecheck is how often an agent without permissions on the hub checks, with
// the bootstrap kubeconfig, that its ManagedCluster still exists.
const presenceRecheck = time.Minute

// Causes that end a connection.
var (
	errExpired = errors.New("the hub credential expired")
	errRefused = errors.New("the hub rejects the credential")
	// errForgotten: the hub has lost the ManagedCluster. errVanished: the agent cannot
	// read it any more, for a reason to be determined.
	errForgotten = errors.New("the hub has no ManagedCluster of this name")
	// errSuperseded: another agent has the permissions of the cluster.
	errSuperseded = errors.New("the hub accepts another agent of this cluster")
	errVanished   = errors.New("the ManagedCluster is gone")
)

// hubMapper maps the types that the agent uses on the hub. Discovery would cost
// requests and could fail.
func hubMapper() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersion(clusterv1.GroupVersion).WithKind("ManagedCluster"), apimeta.RESTScopeRoot)
	m.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), apimeta.RESTScopeRoot)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), apimeta.RESTScopeRoot)
	m.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), apimeta.RESTScopeRoot)
	m.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), apimeta.RESTScopeNamespace)
	m.Add(schema.GroupVersion(addonv1beta1.GroupVersion).WithKind("ManagedClusterAddOn"), apimeta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), apimeta.RESTScopeNamespace)
	return m
}

// connect uses the stored credential until ctx ends or the hub rejects the credential,
// which is not an error: live reads the state again.
func (a *Agent) connect(ctx context.Context, s *snapshot) error {
	if err := a.store.dropInstalled(ctx, s.stored); err != nil {
		return err
	}
	conn, err := s.driver.Open(*s.hub, a.store.bootstrapDir(), s.stored)
	if err != nil {
		return err
	}
	defer conn.Close()
	a.events.normal(names.EventHubClientConfigReady, "Connect", "connecting to the hub at %s", s.hub.Cluster.Server)
	hub, err := newHubClient(conn.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &connected{agent: a, snapshot: s, conn: conn, hub: hub, end: cancel, unanswered: newWakeup()}
	if err := c.run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	stored := c.snapshot.fingerprint()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errRefused):
		a.rejected = rejection{stored, "the hub no longer accepts the stored credential"}
		return nil
	case errors.Is(cause, errForgotten):
		a.rejected = rejection{stored, fmt.Sprintf("the hub no longer has ManagedCluster %s; registering again", s.identity.Cluster)}
		return nil
	case errors.Is(cause, errSuperseded):
		a.rejected = rejection{stored, fmt.Sprintf("the hub accepts another agent of %s; registering again", s.identity.Cluster)}
		return nil
	case errors.Is(cause, errExpired), errors.Is(cause, errVanished):
		return nil
	}
	return context.Cause(ctx)
}

// connected is one connection to the hub.
type connected struct {
	agent    *Agent
	snapshot *snapshot
	conn     driver.Connection
	hub      client.WithWatch
	end      context.CancelCauseFunc
	// unanswered is signaled when a request got no response, or one that may be the
	// first of a lost connection.
	unanswered wakeup

	reach      reach
	credential credentialCondition
	acceptance acceptance
}

// run waits until the agent may read its ManagedCluster, and then runs the controllers
// of the connection until ctx ends.
func (c *connected) run(ctx context.Context) error {
	if err := c.awaitAcceptance(ctx); err != nil {
		return err
	}
	// The hub answered on this connection, so problems of earlier ones are resolved.
	c.agent.eventLog.setTrouble(Condition{})
	inner, err := c.manager()
	if err != nil {
		return err
	}
	if err := c.setup(inner); err != nil {
		return err
	}
	var tasks sync.WaitGroup // They end with ctx, and run waits for that.
	tasks.Go(func() { c.renewCredential(ctx) })
	tasks.Go(func() { c.probe(ctx) })
	err = inner.Start(ctx)
	if err != nil {
		c.end(err)
	}
	tasks.Wait()
	return err
}

// manager returns the manager of one connection. Its cache has only the cluster's own
// ManagedCluster.
func (c *connected) manager() (manager.Manager, error) {
	own := fields.OneTermEqualSelector("metadata.name", c.snapshot.identity.Cluster)
	connection := c.conn.Config()
	connection.UserAgent = userAgent
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper { return alarm{next, c.unanswered} })
	inner, err := ctrl.NewManager(connection, manager.Options{
		Scheme:                 scheme.New(),
		MapperProvider:         func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return hubMapper(), nil },
		Logger:                 c.agent.log.WithName("hub"),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache: cache.Options{
			ByObject:         map[client.Object]cache.ByObject{&clusterv1.ManagedCluster{}: {Field: own}},
			DefaultTransform: cache.TransformStripManagedFields(),
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&coordinationv1.Lease{}}}},
		// Each connection of a process has its own manager, which must stop when the
		// connection changes: the priority queue of v0.24.1 can block then
		// (kubernetes-sigs/controller-runtime#3538).
		Controller: config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the hub connection: %w", err)
	}
	return inner, nil
}

func (c *connected) setup(inner manager.Manager) error {
	a := c.agent
	c.reach.agent, c.reach.server, c.reach.end, c.reach.reset = a, c.snapshot.hub.Cluster.Server, c.end, c.conn.Reset
	renewer := &lease.Reconciler{Client: inner.GetClient(), Clock: a.config.Clock, Observe: func(err error) {
		if apierrors.IsForbidden(err) {
			c.unanswered.signal() // It may have lost all permissions.
		}
		c.reach.observe(err)
	}}
	if err := renewer.SetupWithManager(inner); err != nil {
		return err
	}
	own := reconcile.Request{NamespacedName: types.NamespacedName{Name: c.snapshot.identity.Cluster}}
	reporter := &status.Reconciler{
		Client: inner.GetClient(), Clock: a.config.Clock, Sources: a.sources, Period: a.config.HealthPeriod,
		Changed: a.facts.source(own), Credential: c.credential.get,
	}
	c.credential.valid(c.snapshot)
	if err := reporter.SetupWithManager(inner); err != nil {
		return err
	}
	if err := a.addOns.setup(inner, c); err != nil {
		return err
	}
	for _, extend := range a.config.Extensions {
		if err := extend(inner, c.snapshot.identity.Cluster); err != nil {
			return err
		}
	}
	c.acceptance.agent, c.acceptance.hub, c.acceptance.end = a, inner.GetClient(), c.end
	return c.acceptance.setup(inner, own)
}

// awaitAcceptance returns when the agent may read its ManagedCluster.
func (c *connected) awaitAcceptance(ctx context.Context) error {
	id := c.snapshot.identity
	var refusedSince time.Time
	var presence presence
	for polls := 1; ; polls++ {
		err := c.readOwn(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report := Report{Phase: Registered, Bootstrap: functional(), Hub: Condition{names.ReasonHubKubeConfigError, fmt.Sprintf("the hub at %s: %v", c.snapshot.hub.Cluster.Server, err)}}
		now := c.agent.config.Clock.Now()
		if c.snapshot.facts.Validity.Expired(now) {
			c.end(errExpired)
			return errExpired
		}
		if refusedSince = unauthorizedSince(err, refusedSince, now); !refusedSince.IsZero() && now.Sub(refusedSince) >= unauthorizedGrace {
			c.end(errRefused)
			return errRefused
		}
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
			report = presence.report(ctx, c.agent, c.snapshot)
		case errors.Is(err, driver.ErrDenied):
			report = presence.reportDenied(ctx, c.agent, c.snapshot, report)
		}
		if presence.end != nil {
			c.end(presence.end)
			return presence.end
		}
		c.agent.eventLog.report(report)
		pause.For(ctx, c.agent.config.Clock, unacceptedPolls().Delay(polls, id.Cluster))
	}
}

// unauthorizedSince returns since when every response of the hub was "unauthorized",
// zero if the last one was different or missing.
func unauthorizedSince(err error, since, now time.Time) time.Time {
	switch {
	case !apierrors.IsUnauthorized(err):
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

func waitingForAcceptance(cluster string) string {
	return fmt.Sprintf("the hub issued a credential; waiting for a hub administrator to accept %s: run on the hub: kubectl ocm accept --clusters %s", cluster, cluster)
}

func (c *connected) readOwn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.hub.Get(ctx, client.ObjectKey{Name: c.snapshot.identity.Cluster}, &clusterv1.ManagedCluster{})
}
