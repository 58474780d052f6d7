package agent

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/hubclient"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// fileInterval is how often the hub kubeconfig is read.
const fileInterval = 10 * time.Second

// hubRetries is the back-off between connections that failed.
func hubRetries() credential.Backoff {
	return credential.Backoff{First: time.Second, Most: time.Minute}
}

// hub is the hub as last connected to.
type hub struct{ session atomic.Pointer[session] }

// session is a connection to the hub whose cache has every work of the cluster.
type session struct {
	hash  string
	works client.Reader
}

// agentID returns the id of the agent; empty if it is that of a hub not yet known.
func (a *agent) agentID() string {
	if a.config.AgentID != "" {
		return a.config.AgentID
	}
	if s := a.hub.session.Load(); s != nil {
		return s.hash
	}
	return ""
}

// link connects to the hub, and again when its kubeconfig changes. Renewed credentials
// need no new connection: they are in files that clients follow.
type link struct{ agent *agent }

// Start implements manager.Runnable.
func (l *link) Start(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		err := l.follow(ctx)
		failures++
		if err == nil {
			failures = 0
			continue
		}
		log.FromContext(ctx).Error(err, "Waiting for the hub", "kubeconfig", l.agent.config.HubKubeconfig)
		pause.For(ctx, l.agent.config.Clock, hubRetries().Delay(failures, l.agent.config.Cluster))
	}
	return nil
}

// follow works for one hub until its kubeconfig changes.
func (l *link) follow(ctx context.Context) error {
	file := l.agent.config.HubKubeconfig
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the hub kubeconfig: %w", err)
	}
	hub, err := kubeconfig.ParseHub(data)
	if err != nil {
		return err
	}
	address, err := hubclient.Static(hub, filepath.Dir(file), userAgent)
	if err != nil {
		return err
	}
	inner, err := l.manager(ctx, address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		l.awaitChange(ctx, file, data)
		cancel()
	}()
	err = inner.Start(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	<-changed
	return err
}

// awaitChange returns when a file has other content. A file that cannot be read, as
// while it is replaced, has not.
func (l *link) awaitChange(ctx context.Context, file string, content []byte) {
	for pause.For(ctx, l.agent.config.Clock, fileInterval) {
		if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, content) {
			return
		}
	}
}

// manager returns the manager of one connection.
func (l *link) manager(ctx context.Context, connection *rest.Config) (manager.Manager, error) {
	a := l.agent
	inner, err := ctrl.NewManager(connection, manager.Options{
		Scheme:                 scheme.New(),
		MapperProvider:         func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return hubMapper(), nil },
		Logger:                 log.FromContext(ctx).WithName("hub"),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{a.config.Cluster: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		// As in pkg/registration/agent: each connection has a manager, which must stop.
		Controller: config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the hub connection: %w", err)
	}
	s := &session{hash: names.HubHash(connection.Host), works: inner.GetClient()}
	if err := (&works{agent: a, session: s, hub: inner.GetClient(), records: newRecords(), events: inner.GetEventRecorder(eventSource)}).setup(inner); err != nil {
		return nil, err
	}
	return inner, inner.Add(manager.RunnableFunc(func(ctx context.Context) error { return a.serve(ctx, inner, s) }))
}

// serve makes a session known for as long as its connection lives.
func (a *agent) serve(ctx context.Context, inner manager.Manager, s *session) error {
	// This returns when the cache has every work.
	if _, err := inner.GetCache().GetInformer(ctx, &workv1.ManifestWork{}); err != nil {
		return fmt.Errorf("watch the ManifestWorks of %s: %w", a.config.Cluster, err)
	}
	a.hub.session.Store(s)
	defer a.hub.session.Store(nil)
	defer a.metrics.connected()()
	// Works of another hub, and works that were deleted meanwhile, are noticed now.
	var all workv1.AppliedManifestWorkList
	if err := a.managed.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list AppliedManifestWorks: %w", err)
	}
	for i := range all.Items {
		a.applieds.add("", all.Items[i].Name)
	}
	<-ctx.Done()
	return nil
}

// hubMapper maps the types that the agent uses on the hub. Discovery would cost requests
// and could fail.
func hubMapper() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersion(workv1.GroupVersion).WithKind("ManifestWork"), apimeta.RESTScopeNamespace)
	return m
}
