package addon_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/apply"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const patience = 60 * time.Second

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// env is a hub's control plane with what the operator applies there.
type env struct {
	cp    *controlplane.ControlPlane
	admin client.Client
	// metrics are those of the add-on manager that was started last.
	metrics *prometheus.Registry
}

func newEnv(t *testing.T) *env {
	t.Helper()
	cp := controlplane.Start(t)
	e := &env{cp: cp, admin: cp.Client(t)}
	values := manifests.Hub{
		Name: names.ClusterManagerName, Namespace: names.HubNamespace, Version: "0.0.0", AddOnManager: &manifests.Component{},
	}
	applier := &apply.Applier{Client: e.admin, FieldManager: "ocm.test"}
	for _, render := range []func(manifests.Hub) ([]*unstructured.Unstructured, error){
		manifests.RenderHubCRDs, manifests.RenderHubBase, manifests.RenderHubAdmission,
	} {
		objs, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := applier.Apply(t.Context(), apply.Objects(objs)...); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func (e *env) user() string {
	return names.ServiceAccountUser(names.HubNamespace, names.HubAddOnManagerServiceAccount)
}

// start runs the add-on manager until the test ends or stop is called. Its
// requests go through wrap.
func (e *env) start(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	t.Helper()
	end := e.run(t, wrap, time.Minute)
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("the add-on manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// run runs the add-on manager, with the rights of our manifests, until end is
// called, which waits for patience until everything has stopped.
func (e *env) run(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, patience time.Duration) (end func() error) {
	t.Helper()
	connection := e.cp.ConfigFor(t, e.user())
	if wrap != nil {
		connection.Wrap(wrap)
	}
	mgr, err := manager.New(connection, manager.Options{
		Scheme: scheme.New(), Cache: addon.CacheOptions(),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
		GracefulShutdownTimeout: &patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e.metrics = prometheus.NewRegistry()
	if err := addon.Setup(ctx, mgr, addon.Config{Clock: clock.RealClock{}, Metrics: e.metrics}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// cluster makes what an accepted cluster has on the hub.
func (e *env) cluster(t *testing.T, name string, change ...func(*clusterv1.ManagedCluster)) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	for _, c := range change {
		c(cluster)
	}
	e.create(t, cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}})
}

func managedCluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (e *env) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func (e *env) delete(t *testing.T, object client.Object) {
	t.Helper()
	if err := e.admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func addOn(cluster, name string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
}

func (e *env) merge(t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := e.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (e *env) get(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	if err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

func (e *env) exists(ctx context.Context, t *testing.T, object client.Object) bool {
	t.Helper()
	err := e.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

// awaitAddOn waits until an add-on is as wanted.
func (e *env) awaitAddOn(t *testing.T, cluster, name, what string, wanted func(*addonv1beta1.ManagedClusterAddOn) bool) {
	t.Helper()
	found := addOn(cluster, name)
	eventually(t, cluster+"/"+name+" "+what, func(ctx context.Context) (bool, error) {
		return e.exists(ctx, t, found) && wanted(found), nil
	}, func() any { return found.Status })
}

// awaitNotReady waits until the infrastructure is not ready, for a reason.
func (e *env) awaitNotReady(t *testing.T, cluster, name, reason string) *metav1.Condition {
	t.Helper()
	var condition *metav1.Condition
	e.awaitAddOn(t, cluster, name, "is not ready: "+reason, func(a *addonv1beta1.ManagedClusterAddOn) bool {
		condition = apimeta.FindStatusCondition(a.Status.Conditions, names.ConditionTokenInfrastructureReady)
		return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == reason
	})
	return condition
}

// counter counts the writes of an add-on manager by what they concern.
type counter struct {
	mu     sync.Mutex
	writes []string
	// killAfter makes it lose its connection for ever after that many writes
	// that concern only; 0 never.
	killAfter int
	only      string
	dead      chan struct{}
}

func newCounter() *counter { return &counter{dead: make(chan struct{})} }

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
		if strings.Contains(w, "/namespaces/"+cluster+"/") {
			found = append(found, w)
		}
	}
	return found
}

// of returns the writes in the namespace of a cluster.
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
