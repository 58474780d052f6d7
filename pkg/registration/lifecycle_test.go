// Package registration_test tests agents and hub together, which never import each
// other, on real control planes.
package registration_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/awsirsa/setup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/drivertest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	patience  = await.Patience
	cluster   = "c1"
	id        = "id1"
	namespace = "open-cluster-management-agent"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(runCommand()) //nolint:forbidigo // It is a program of its own.
	}
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// fleet is a hub and a managed cluster with the rights that our manifests give.
type fleet struct {
	hub     *controlplane.ControlPlane
	managed *controlplane.ControlPlane
	admin   client.Client
	agent   *agent.Agent
}

func newFleet(t *testing.T, onHub, onManaged *controlplane.ControlPlane) *fleet {
	t.Helper()
	f := &fleet{hub: onHub, managed: onManaged, admin: onHub.Client(t)}
	installation.Hub(t, f.admin, manifests.Hub{System: setup.Setup{}.HubRuntime(driver.HubSettings{}).System})
	operator, err := manifests.RenderHubOperator(manifests.HubOperator{BootstrapToken: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range operator {
		if slices.Contains([]string{names.BootstrapClusterRole, names.BootstrapTokenBinding}, object.GetName()) {
			installation.Create(t, f.admin, object)
		}
	}
	managed := f.managed.Client(t)
	values := manifests.Klusterlet{Name: names.KlusterletName, Namespace: namespace, DockerConfig: []byte("{}")}
	base, err := manifests.RenderKlusterletBase(values)
	installation.Some(t, managed, base, err, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	installation.Create(t, managed, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.BootstrapHubKubeconfigSecret},
		Data:       map[string][]byte{names.KeyKubeconfig: f.hub.KubeconfigFor(t, names.BootstrapTokenUser, names.BootstrapTokenGroup)},
	})
	return f
}

// startHub runs the hub's controllers as their ServiceAccount, with a driver beside
// csr.
func (f *fleet) startHub(t *testing.T, beside hub.Driver) {
	t.Helper()
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	connection := f.hub.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	controllers.Start(t, connection, manager.Options{Cache: objects}, func(ctx context.Context, mgr manager.Manager) error {
		return hub.Setup(ctx, mgr, hub.Config{
			IdentityAnnotations: drivers.All().Annotations(),
			Drivers:             []hub.Driver{{Hub: csr.Hub{}}, beside},
			Namespace:           names.HubNamespace, ResourceCleanup: true,
			CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		})
	})
}

// startAgent runs the agent as its ServiceAccount.
func (f *fleet) startAgent(t *testing.T, newDriver func(driver.Identity) driver.Agent) (stop func()) {
	t.Helper()
	connection := f.managed.ConfigFor(t, names.ServiceAccountUser(namespace, names.RegistrationAgentServiceAccount(names.KlusterletName)), "system:serviceaccounts", "system:authenticated")
	return controllers.Start(t, connection, manager.Options{Cache: agent.CacheOptions(namespace)}, func(_ context.Context, mgr manager.Manager) error {
		var err error
		f.agent, err = agent.Setup(mgr, prometheus.NewRegistry(), agent.Config{
			Namespace: namespace, Names: agent.Names{Cluster: cluster},
			Secrets:      agent.Secrets{Bootstrap: names.BootstrapHubKubeconfigSecret, Hub: names.HubKubeconfigSecret},
			HealthPeriod: time.Minute, Clock: clock.RealClock{},
			NewDriver: newDriver,
		})
		return err
	})
}

// accept decides on the cluster as an administrator does.
func (f *fleet) accept(t *testing.T, accepted bool) {
	t.Helper()
	await.Success(t, patience, "the decision", func(ctx context.Context) error {
		return f.admin.Patch(ctx, f.object(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%v}}`, accepted)))
	})
}

func (f *fleet) object() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
}

// awaitReport waits until the agent says that it is in a phase, with words.
func (f *fleet) awaitReport(t *testing.T, phase agent.Phase, words string) {
	t.Helper()
	await.Success(t, patience, fmt.Sprintf("phase %s, %q", phase, words), func(context.Context) error {
		if report := f.agent.Report(); report.Phase != phase || !strings.Contains(report.Hub.Message, words) {
			return fmt.Errorf("it is %+v", report)
		}
		return nil
	})
}

// awaitCondition waits until the hub says so of the cluster, and returns it.
func (f *fleet) awaitCondition(t *testing.T, kind string, status metav1.ConditionStatus) *clusterv1.ManagedCluster {
	t.Helper()
	object := f.object()
	await.Success(t, patience, fmt.Sprintf("condition %s is %s", kind, status), func(ctx context.Context) error {
		if err := f.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionPresentAndEqual(object.Status.Conditions, kind, status) {
			return fmt.Errorf("the conditions are %+v", object.Status.Conditions)
		}
		return nil
	})
	return object
}

// lastSeen returns since when the hub has found the cluster available.
func (f *fleet) lastSeen(t *testing.T) metav1.Time {
	t.Helper()
	c := apimeta.FindStatusCondition(f.awaitCondition(t, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue).Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	return c.LastTransitionTime
}

// TestLifeWithoutCertificate is the life of a cluster whose credential has no
// certificate, no file and no end, and depends on a service that fails.
func TestLifeWithoutCertificate(t *testing.T) {
	t.Parallel()
	f := newFleet(t, controlplane.Lease(t), controlplane.Lease(t))
	outside := drivertest.NewOutside()
	outside.Break(id)
	f.startHub(t, hub.Driver{Hub: &drivertest.FakeGranter{Outside: outside, Check: 200 * time.Millisecond}})
	shown := f.certificate(t)
	newDriver := func(who driver.Identity) driver.Agent {
		return &drivertest.FakeAgent{Identity: who, ID: id, Outside: outside, Certificate: shown}
	}
	stopAgent := f.startAgent(t, newDriver)
	nothingOutside := func(context.Context) error {
		if left := outside.Objects(); len(left) > 0 {
			return fmt.Errorf("there is %v", left)
		}
		return nil
	}

	// Nobody has accepted it: it has announced itself, and nothing is granted.
	f.awaitReport(t, agent.Requested, "waiting for the hub")
	// Accepted, and the service fails: the cluster is accepted all the same.
	f.accept(t, true)
	f.awaitCondition(t, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue)
	f.awaitCondition(t, names.ConditionRegistrationGranted, metav1.ConditionFalse)
	f.awaitReport(t, agent.Registered, "no entry for this identity")
	// The service works again.
	outside.Repair(id)
	f.awaitReport(t, agent.Running, "")
	f.awaitCondition(t, clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue)
	since := f.lastSeen(t)
	f.checkStored(t)

	// A process that starts anew works with what is stored.
	stopAgent()
	f.startAgent(t, newDriver)
	f.awaitReport(t, agent.Running, "")
	if again := f.lastSeen(t); !again.Equal(&since) {
		t.Errorf("a restart of the agent changed the cluster's availability: %v, then %v", since, again)
	}

	// Denied: the service lets it through no longer. Accepted again it goes on
	// with the same credential, without registering anew.
	f.accept(t, false)
	f.awaitCondition(t, names.ConditionRegistrationGranted, metav1.ConditionFalse)
	await.Success(t, patience, "nothing is left outside", nothingOutside)
	f.accept(t, true)
	f.awaitCondition(t, names.ConditionRegistrationGranted, metav1.ConditionTrue)
	f.awaitReport(t, agent.Running, "")
	f.checkStored(t)

	// Somebody takes the role away outside: it is made again.
	outside.Set(drivertest.FakeEntry(id), "")
	await.Success(t, patience, "the entry is back", func(context.Context) error {
		if found := outside.Objects(); len(found) != 2 {
			return fmt.Errorf("there is %v", found)
		}
		return nil
	})

	// Detached: nothing is left, there or here.
	f.detach(t)
	if err := nothingOutside(t.Context()); err != nil {
		t.Error(err)
	}
}

// certificate is what the hub knows as an agent of the cluster.
func (f *fleet) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	shown, err := kubeconfig.ParseHub(f.hub.KubeconfigFor(t, "fake-user", names.MappedClusterGroup(cluster)))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(shown.User.ClientCertificateData, shown.User.ClientKeyData)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// detach deletes the cluster on the hub, and waits until both sides know.
func (f *fleet) detach(t *testing.T) {
	t.Helper()
	if err := f.admin.Delete(t.Context(), f.object()); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the cluster is gone", func(ctx context.Context) error {
		left := f.object()
		err := f.admin.Get(ctx, client.ObjectKeyFromObject(left), left)
		if err == nil {
			err = fmt.Errorf("it is there, with %+v", left.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
	f.awaitReport(t, agent.Rejected, "the hub detached "+cluster)
}

// checkStored checks that the Secret holds a kubeconfig and no file of another
// driver's credential.
func (f *fleet) checkStored(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := f.managed.Client(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: names.HubKubeconfigSecret}, secret); err != nil {
		t.Fatal(err)
	}
	if stored, err := kubeconfig.ParseHub(secret.Data[names.KeyKubeconfig]); err != nil || stored.User.Exec == nil {
		t.Errorf("the stored kubeconfig: %v", err)
	}
	for _, key := range names.CredentialKeys() {
		if _, ok := secret.Data[key]; ok {
			t.Errorf("the Secret has a key %s", key)
		}
	}
}
