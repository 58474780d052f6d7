// Package hub_test tests the controllers of the hub together, as package hub sets
// them up: most need the resources of another one, such as the namespace and the
// bindings of acceptance. Each test leases a control plane for itself, because the
// controllers act on every cluster that they find. Tests of one package without an API
// server are in that package.
package hub_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/csrapproval"
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

// env is a hub's control plane with what init installs there for registration.
type env struct {
	cp    *controlplane.ControlPlane
	admin client.Client
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvOn(t, controlplane.Lease(t))
}

func newEnvOn(t *testing.T, cp *controlplane.ControlPlane) *env {
	t.Helper()
	e := &env{cp: cp, admin: cp.Client(t)}
	installation.Hub(t, e.admin, manifests.Hub{IdentityAnnotations: identityAnnotations()})
	return e
}

// identityAnnotations are those of the drivers that these tests use.
func identityAnnotations() []string {
	return append(drivers.All().Annotations(), drivertest.FakeAnnotation)
}

func defaults() hub.Config {
	return hub.Config{
		IdentityAnnotations: identityAnnotations(),
		Drivers:             []hub.Driver{{Hub: csr.Hub{}, Setup: csrapproval.Setup(false, nil)}},
		Namespace:           names.HubNamespace,
		ResourceCleanup:     true,
		CleanupResources:    hub.DefaultCleanupResources(),
		Clock:               clock.RealClock{},
	}
}

// approving switches ManagedClusterAutoApproval on, for the first CSRs of users.
func approving(config hub.Config, users ...string) hub.Config {
	config.AutoApprove = true
	config.Drivers = []hub.Driver{{Hub: csr.Hub{}, Setup: csrapproval.Setup(true, users)}}
	return config
}

// start runs the hub's controllers until the test ends or stop is called. Its
// requests go through wrap.
func (e *env) start(t *testing.T, cfg hub.Config, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	t.Helper()
	return controllers.Start(t, e.connection(t, wrap), options(t), setup(cfg))
}

// run runs the hub's controllers until end is called, which waits for a second
// until everything has stopped.
func (e *env) run(t *testing.T, cfg hub.Config, wrap func(http.RoundTripper) http.RoundTripper) (end func() error) {
	t.Helper()
	return controllers.Run(t, e.connection(t, wrap), options(t), time.Second, setup(cfg))
}

// connection is that of the hub's ServiceAccount.
func (e *env) connection(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	t.Helper()
	connection := e.cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	if wrap != nil {
		connection.Wrap(wrap)
	}
	return connection
}

func options(t *testing.T) manager.Options {
	t.Helper()
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	return manager.Options{Cache: objects}
}

func setup(cfg hub.Config) controllers.Setup {
	return func(ctx context.Context, mgr manager.Manager) error { return hub.Setup(ctx, mgr, cfg) }
}

// cluster creates a ManagedCluster whose agent a1 has an approved request.
func (e *env) cluster(t *testing.T, name string, change ...func(*clusterv1.ManagedCluster)) {
	t.Helper()
	if names.ValidateClusterName(name) == nil {
		installation.Agent(t, e.admin, name, "a1")
	}
	e.bare(t, name, change...)
}

// bare creates a ManagedCluster that has no agent yet.
func (e *env) bare(t *testing.T, name string, change ...func(*clusterv1.ManagedCluster)) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range change {
		c(cluster)
	}
	if err := e.admin.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// approve approves a request as a person does.
func (e *env) approve(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	e.decide(t, request, certificatesv1.CertificateApproved)
}

// decide approves or denies a request as a person does, unless the hub approved it
// first.
func (e *env) decide(t *testing.T, request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) {
	t.Helper()
	eventually(t, request.Name+" is decided", func(ctx context.Context) (bool, error) {
		decided := slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
		if decided {
			return true, nil
		}
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Test", Message: "decided by a person",
		})
		err := e.admin.SubResource("approval").Update(ctx, request)
		if apierrors.IsConflict(err) {
			return false, e.admin.Get(ctx, client.ObjectKeyFromObject(request), request)
		}
		return err == nil, err
	})
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

// newWrites counts the writes of a hub by the cluster that they concern.
func newWrites() *interrupt.Writes { return interrupt.Count(concerns) }

func concerns(write, cluster string) bool {
	return strings.Contains(write, "/"+cluster) || strings.Contains(write, ":"+cluster)
}

// besidesRights returns writes without those of roles and bindings, which acceptance
// applies once more where its cache shows them too late.
func besidesRights(writes []string) []string {
	return slices.DeleteFunc(writes, func(write string) bool { return strings.Contains(write, "/rbac.authorization.k8s.io/") })
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc, last ...func() any) {
	t.Helper()
	await.Condition(t, patience, what, done, last...)
}
