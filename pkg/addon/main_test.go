// Package addon_test tests the controllers of package addon together: they interact in
// the status of ManagedClusterAddOns. Each test leases a control plane for itself,
// because the controllers act on every add-on that they find.
package addon_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

const patience = await.Patience

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
	return newEnvOn(t, controlplane.Lease(t))
}

func newEnvOn(t *testing.T, cp *controlplane.ControlPlane) *env {
	t.Helper()
	e := &env{cp: cp, admin: cp.Client(t)}
	installation.Hub(t, e.admin, manifests.Hub{AddOnManager: &manifests.Component{}})
	return e
}

func (e *env) user() string {
	return names.ServiceAccountUser(names.HubNamespace, names.HubAddOnManagerServiceAccount)
}

// start runs the add-on manager until the test ends or stop is called. Its
// requests go through wrap.
func (e *env) start(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	t.Helper()
	return controllers.Start(t, e.connection(t, wrap), manager.Options{Cache: addon.CacheOptions()}, e.setup)
}

// run runs the add-on manager until end is called, which waits for a second
// until everything has stopped.
func (e *env) run(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (end func() error) {
	t.Helper()
	return controllers.Run(t, e.connection(t, wrap), manager.Options{Cache: addon.CacheOptions()}, time.Second, e.setup)
}

// connection has the rights of our manifests.
func (e *env) connection(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	t.Helper()
	connection := e.cp.ConfigFor(t, e.user())
	if wrap != nil {
		connection.Wrap(wrap)
	}
	return connection
}

func (e *env) setup(ctx context.Context, mgr manager.Manager) error {
	e.metrics = prometheus.NewRegistry()
	return addon.Setup(ctx, mgr, addon.Config{Clock: clock.RealClock{}, Metrics: e.metrics, Namespace: names.HubNamespace})
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

// newWrites counts the writes of an add-on manager by the namespace of a cluster.
func newWrites() *interrupt.Writes { return interrupt.Count(inNamespace) }

func inNamespace(write, cluster string) bool {
	return strings.Contains(write, "/namespaces/"+cluster+"/")
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc, last ...func() any) {
	t.Helper()
	await.Condition(t, patience, what, done, last...)
}
