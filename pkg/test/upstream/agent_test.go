package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/csrapproval"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/upstream"
)

// patience is far above what anything takes: the machine may be busy.
const patience = await.Patience

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	m.Run()
}

// TestAgentOnOurHub has OCM's agent live on our hub, with the permissions and the
// admission policies that a cluster has there: once with the requests of recent
// releases, which patch, once with those of old ones, which update.
func TestAgentOnOurHub(t *testing.T) {
	t.Parallel()
	ours, managed := controlplane.Lease(t), controlplane.Lease(t)
	admin := ours.Client(t)
	installation.Hub(t, admin, manifests.Hub{})
	startHub(t, ours)
	crds, err := manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: names.KlusterletName, Namespace: names.AgentNamespace})
	installation.Some(t, managed.Client(t), crds, err, installation.CRD)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, ours.Kubeconfig(t, "hub"), 0o600); err != nil {
		t.Fatal(err)
	}
	for cluster, puts := range map[string]bool{"patching": false, "updating": true} {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			w := &world{cluster: cluster, admin: admin, managed: managed.Client(t), kubeconfig: kubeconfig}
			installation.Agent(t, admin, cluster, "a1")
			w.identity = ours.ClientFor(t, ours.ConfigFor(t, names.AgentUser(cluster, "a1"), names.ClusterGroup(cluster), names.GroupManagedClusters))
			w.agent = &upstream.Agent{
				Hub: w.identity, Managed: w.managed, Cluster: cluster,
				HubHash: names.HubHash(ours.URL + cluster), AgentID: "agent", Puts: puts,
			}
			w.live(t)
		})
	}
}

// startHub runs the hub's controllers.
func startHub(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	objects, err := hub.CacheOptions()
	if err != nil {
		t.Fatal(err)
	}
	connection := cp.ConfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.HubRegistrationServiceAccount))
	controllers.Start(t, connection, manager.Options{Cache: objects}, func(ctx context.Context, mgr manager.Manager) error {
		return hub.Setup(ctx, mgr, hub.Config{
			IdentityAnnotations: drivers.All().Annotations(),
			Drivers:             []hub.Driver{{Hub: csr.Hub{}, Setup: csrapproval.Setup(false, nil)}},
			Namespace:           names.HubNamespace, ResourceCleanup: true, CleanupResources: hub.DefaultCleanupResources(), Clock: clock.RealClock{},
		})
	})
}

// world is one cluster with OCM's agent on our hub.
type world struct {
	cluster        string
	admin, managed client.Client
	// identity is a client of the hub as the agent.
	identity   client.Client
	agent      *upstream.Agent
	kubeconfig string
}

// live accepts a cluster, deploys a work to it, changes it, and detaches the cluster.
func (w *world) live(t *testing.T) {
	t.Helper()
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: w.cluster}}
	mc.Spec.HubAcceptsClient = true
	if err := w.admin.Create(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the cluster is accepted", func(ctx context.Context) error {
		if err := w.identity.Get(ctx, client.ObjectKeyFromObject(mc), mc); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
			return fmt.Errorf("%+v", mc.Status.Conditions)
		}
		return nil
	})
	w.beat(t)
	work := w.create(t)
	w.apply(t, work)
	w.shown(t, work, "value")
	w.change(t, work)
	w.stale(t, work)
	w.apply(t, work)
	w.shown(t, work, "other")
	w.detach(t, mc, work)
}

// beat sends what OCM's registration agent sends once a minute, and events.
func (w *world) beat(t *testing.T) {
	t.Helper()
	await.Success(t, patience, "the lease is renewed", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := w.identity.Get(ctx, client.ObjectKey{Namespace: w.cluster, Name: names.ManagedClusterLease}, lease); err != nil {
			return err
		}
		lease.Spec.RenewTime = new(metav1.NowMicro())
		return w.identity.Update(ctx, lease)
	})
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: w.cluster}}
	if err := w.identity.Get(t.Context(), client.ObjectKeyFromObject(mc), mc); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		before := mc.DeepCopy()
		reason := map[string]string{clusterv1.ManagedClusterConditionJoined: "ManagedClusterJoined", clusterv1.ManagedClusterConditionAvailable: "ManagedClusterAvailable"}[kind]
		apimeta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "Managed cluster is available"})
		if err := w.identity.Status().Patch(t.Context(), mc, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	about := corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster", Namespace: w.cluster, Name: w.cluster}
	for _, event := range []client.Object{
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: "core"}, InvolvedObject: about, Reason: "Test", Type: "Normal"},
		&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: "new"}, Regarding: about, Reason: "Test", Type: "Normal", Action: "Test",
			EventTime: metav1.NowMicro(), ReportingController: "klusterlet-agent", ReportingInstance: "klusterlet-agent",
		},
	} {
		if err := w.identity.Create(t.Context(), event); err != nil {
			t.Errorf("%T: %v", event, err)
		}
	}
}

func (w *world) configMap(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"%s-%s"},"data":{"key":%q}}`, w.cluster, name, value)
}

// create creates a work with a ConfigMap for each update strategy.
func (w *world) create(t *testing.T) *workv1.ManifestWork {
	t.Helper()
	work := installation.Work(w.cluster, "app", w.configMap("one", "value"), w.configMap("two", "value"))
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "default", Name: w.cluster + "-two"},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply},
	}}
	if err := w.admin.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	return work
}

// apply has the agent apply a work until nothing is left to do.
func (w *world) apply(t *testing.T, work *workv1.ManifestWork) {
	t.Helper()
	await.Success(t, patience, "OCM's agent has applied "+work.Name, func(ctx context.Context) error {
		before := w.agent.Writes
		err := w.agent.Sync(ctx, work.Name)
		if err == nil && w.agent.Writes != before {
			err = errors.New("it wrote something")
		}
		return err
	})
}

// change changes the first manifest of a work.
func (w *world) change(t *testing.T, work *workv1.ManifestWork) {
	t.Helper()
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	work.Spec.Workload.Manifests = installation.Work(w.cluster, "app", w.configMap("one", "other"), w.configMap("two", "other")).Spec.Workload.Manifests
	if err := w.admin.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

// shown checks what was applied, and what the commands say about it.
func (w *world) shown(t *testing.T, work *workv1.ManifestWork, value string) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		c := &corev1.ConfigMap{}
		if err := w.managed.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: w.cluster + "-" + name}, c); err != nil {
			t.Fatal(err)
		}
		if c.Data["key"] != value || len(c.OwnerReferences) != 1 {
			t.Errorf("%s: %v, owners %v", name, c.Data, c.OwnerReferences)
		}
	}
	out, code := w.ocm(t, "get", "works", work.Name, "--clusters", w.cluster, "-o", "json")
	if code != 0 || strings.Count(out, `"applied": "True"`) != 3 || strings.Count(out, `"available": "True"`) != 3 || strings.Contains(out, `"reason"`) {
		t.Errorf("get works: exit code %d: %s", code, out)
	}
	if out, code := w.ocm(t, "check", "work", work.Name, "--cluster", w.cluster); code != 0 {
		t.Errorf("check work: exit code %d: %s", code, out)
	}
}

// stale checks what the commands say before the agent has seen a change.
func (w *world) stale(t *testing.T, work *workv1.ManifestWork) {
	t.Helper()
	if out, code := w.ocm(t, "check", "work", work.Name, "--cluster", w.cluster); code != 3 || !strings.Contains(out, "reached the agent") {
		t.Errorf("check work: exit code %d: %s", code, out)
	}
}

// ocm runs a command on the hub.
func (w *world) ocm(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = int(cmd.Execute(t.Context(), cmd.Env{
		IOStreams: cmd.Streams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, Name: "kubectl ocm", Clock: clock.RealClock{},
		Getenv: func(string) string { return "" },
	}, append(args, "--kubeconfig", w.kubeconfig)))
	return out.String(), code
}

// detach deletes the cluster; the agent finishes its works.
func (w *world) detach(t *testing.T, mc *clusterv1.ManagedCluster, work *workv1.ManifestWork) {
	t.Helper()
	if err := w.admin.Delete(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	await.Success(t, patience, "the cluster is gone", func(ctx context.Context) error {
		if err := w.agent.Sync(ctx, work.Name); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		err := w.admin.Get(ctx, client.ObjectKeyFromObject(mc), mc)
		if err == nil {
			return fmt.Errorf("it is there: %+v", mc.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
	var left corev1.ConfigMapList
	if err := w.managed.List(t.Context(), &left, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(left.Items, func(c corev1.ConfigMap) bool { return strings.HasPrefix(c.Name, w.cluster) }) {
		t.Errorf("what it deployed is left: %v", left.Items)
	}
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work); !apierrors.IsNotFound(err) {
		t.Errorf("the work: %v", err)
	}
}
