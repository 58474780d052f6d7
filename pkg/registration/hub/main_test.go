package hub_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// env is a hub's control plane with what init installs there for registration.
type env struct {
	cp    *controlplane.ControlPlane
	admin client.Client
}

func newEnv(t *testing.T) *env {
	t.Helper()
	cp := controlplane.Start(t)
	e := &env{cp: cp, admin: cp.Client(t)}
	e.install(t)
	return e
}

func defaults() hub.Config {
	return hub.Config{
		Drivers:          []driver.Hub{csr.Hub{}},
		ResourceCleanup:  true,
		CleanupResources: hub.DefaultCleanupResources(),
		Clock:            clock.RealClock{},
	}
}

// start runs the hub's controllers until the test ends or stop is called. Its
// requests go through wrap.
func (e *env) start(t *testing.T, cfg hub.Config, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	t.Helper()
	end := e.run(t, cfg, wrap, time.Minute)
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("the hub's controllers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// run runs the hub's controllers, as the hub's ServiceAccount, until end is
// called, which waits for patience until everything has stopped.
func (e *env) run(t *testing.T, cfg hub.Config, wrap func(http.RoundTripper) http.RoundTripper, patience time.Duration) (end func() error) {
	t.Helper()
	connection := e.cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	if wrap != nil {
		connection.Wrap(wrap)
	}
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(connection, manager.Options{
		Scheme: scheme.New(), Cache: objects,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
		GracefulShutdownTimeout: &patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := hub.Setup(ctx, mgr, cfg); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// cluster creates a ManagedCluster as an agent does.
func (e *env) cluster(t *testing.T, name string, change ...func(*clusterv1.ManagedCluster)) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range change {
		c(cluster)
	}
	if err := e.admin.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// accept lets a cluster join.
func (e *env) accept(t *testing.T, name string) {
	t.Helper()
	e.patch(t, name, `{"spec":{"hubAcceptsClient":true}}`)
}

// deny turns a cluster down and waits until that is done.
func (e *env) deny(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	e.patch(t, name, `{"spec":{"hubAcceptsClient":false}}`)
	return e.awaitCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, names.ReasonHubDenied)
}

func (e *env) patch(t *testing.T, name, patch string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.admin.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (e *env) patchStatus(t *testing.T, name, patch string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.admin.Status().Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (e *env) get(ctx context.Context, t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	if err := e.admin.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// awaitCluster waits until the cluster is as wanted and returns it.
func (e *env) awaitCluster(t *testing.T, name, what string, wanted func(*clusterv1.ManagedCluster) bool) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster *clusterv1.ManagedCluster
	eventually(t, name+" is "+what, func(ctx context.Context) (bool, error) {
		cluster = e.get(ctx, t, name)
		return wanted(cluster), nil
	}, func() any { return cluster.Status.Conditions })
	return cluster
}

// awaitCondition waits for a condition with a status and a reason.
func (e *env) awaitCondition(t *testing.T, name, kind string, status metav1.ConditionStatus, reason string) *clusterv1.ManagedCluster {
	t.Helper()
	return e.awaitCluster(t, name, kind+"="+string(status)+" "+reason, func(c *clusterv1.ManagedCluster) bool {
		condition := apimeta.FindStatusCondition(c.Status.Conditions, kind)
		return condition != nil && condition.Status == status && condition.Reason == reason
	})
}

func (e *env) awaitAccepted(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	return e.awaitCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, names.ReasonHubAccepted)
}

func (e *env) awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	eventually(t, key.String()+" is gone", func(ctx context.Context) (bool, error) {
		err := e.admin.Get(ctx, key, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}, func() any { return object })
}

// placeOf returns what a cluster can have on the hub.
func placeOf(cluster string) map[string]client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	return map[string]client.Object{
		"namespace":            &corev1.Namespace{ObjectMeta: meta("", cluster)},
		"cluster role":         &rbacv1.ClusterRole{ObjectMeta: meta("", names.ManagedClusterClusterRole(cluster))},
		"cluster role binding": &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", names.ManagedClusterClusterRole(cluster))},
		"registration binding": &rbacv1.RoleBinding{ObjectMeta: meta(cluster, names.RegistrationRoleBinding(cluster))},
		"work binding":         &rbacv1.RoleBinding{ObjectMeta: meta(cluster, names.WorkRoleBinding(cluster))},
		"lease":                &coordinationv1.Lease{ObjectMeta: meta(cluster, names.ManagedClusterLease)},
	}
}

// has returns which of what a cluster can have exists.
func (e *env) has(ctx context.Context, t *testing.T, cluster string) []string {
	t.Helper()
	var found []string
	for what, object := range placeOf(cluster) {
		err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			found = append(found, what)
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	slices.Sort(found)
	return found
}

func (e *env) agent(t *testing.T, cluster string) client.Client {
	t.Helper()
	return e.cp.ClientFor(t, e.agentConfig(t, cluster))
}

func (e *env) agentConfig(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	return e.cp.ConfigFor(t, names.AgentUser(cluster, "a1"), names.ClusterGroup(cluster), names.GroupManagedClusters)
}

// counter counts the writes of a hub by what they concern.
type counter struct {
	mu     sync.Mutex
	writes []string
	// killAfter makes the hub lose its connection for ever after that many
	// writes that concern only; 0 never.
	killAfter int
	only      string
	dead      chan struct{}
}

var errKilled = errors.New("killed")

type transport struct {
	*counter
	next http.RoundTripper
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return transport{counter: c, next: next}
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return t.next.RoundTrip(req)
	}
	select {
	case <-t.dead:
		return nil, errKilled
	default:
	}
	kill := t.count(req)
	resp, err := t.next.RoundTrip(req)
	if kill {
		close(t.dead)
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errKilled
	}
	return resp, err
}

func (c *counter) count(req *http.Request) (kill bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.concerning(c.only))
	c.writes = append(c.writes, req.Method+" "+req.URL.Path)
	return before == c.killAfter-1 && len(c.concerning(c.only)) == c.killAfter
}

func (c *counter) concerning(cluster string) []string {
	var found []string
	for _, w := range c.writes {
		if strings.Contains(w, "/"+cluster) || strings.Contains(w, ":"+cluster) {
			found = append(found, w)
		}
	}
	return found
}

// of returns the writes that concern a cluster.
func (c *counter) of(cluster string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.concerning(cluster)
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc, last ...func() any) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, done)
	if err == nil {
		return
	}
	for _, l := range last {
		t.Logf("last seen: %+v", l())
	}
	t.Fatalf("wait until %s: %v", what, err)
}
