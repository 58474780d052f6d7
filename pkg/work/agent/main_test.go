package agent_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent"
)

// patience is far above what anything takes: the machine may be busy.
const patience = 60 * time.Second

// hub is the hub of every test; each has a cluster of its own on it.
var hub *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, &hub)
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

// TestAgent runs the tests that share a managed cluster; each has an agent and a
// namespace of its own there.
func TestAgent(t *testing.T) {
	t.Parallel()
	managed := controlplane.Start(t)
	for name, test := range map[string]func(*testing.T, *place){
		"applies":           testApplies,
		"update":            testUpdate,
		"create-only":       testCreateOnly,
		"server-side-apply": testServerSideApply,
		"ignore-fields":     testIgnoreFields,
		"read-only":         testReadOnly,
		"unknown-kind":      testUnknownKind,
		"wrong-manifests":   testWrongManifests,
		"removal":           testRemoval,
		"two-owners":        testTwoOwners,
		"foreground":        testForeground,
		"orphan":            testOrphan,
		"selective":         testSelectivelyOrphan,
		"applied-deleted":   testAppliedDeleted,
		"executor":          testExecutor,
		"escalation":        testEscalation,
		"hidden":            testHidden,
		"eviction":          testEviction,
		"feedback":          testFeedback,
		"complete":          testComplete,
		"requests":          testRequests,
		"interrupted":       testInterrupted,
		"kubeconfig":        testKubeconfig,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlace(t, managed, name))
		})
	}
}

// place is one cluster: its namespace on the hub, and a namespace of the same name on
// the managed cluster.
type place struct {
	cluster    string
	hub        client.Client
	managed    client.Client
	connection *rest.Config
	config     agent.Config
}

func newPlace(t *testing.T, managed *controlplane.ControlPlane, cluster string) *place {
	t.Helper()
	p := &place{cluster: cluster, hub: hub.Client(t), managed: managed.Client(t), connection: managed.Config()}
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace})
	installation.Some(t, p.hub, only(crds, "manifestworks.work.open-cluster-management.io"), err, installation.CRD)
	crds, err = manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: cluster, Namespace: names.AgentNamespace})
	installation.Some(t, p.managed, only(crds, "appliedmanifestworks.work.open-cluster-management.io"), err, installation.CRD)
	// What the hub controller gives the agents of an accepted cluster.
	group := names.ClusterGroup(cluster)
	installation.Create(t, p.hub,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "work"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
			{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks/status"}, Verbs: []string{"patch", "update"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "work"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "work"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
		})
	installation.Create(t, p.managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, hub.KubeconfigFor(t, names.AgentUser(cluster, "test"), group), 0o600); err != nil {
		t.Fatal(err)
	}
	p.config = agent.Config{
		Cluster: cluster, AgentID: "agent-" + cluster, HubKubeconfig: file,
		StatusSyncInterval: 200 * time.Millisecond, EvictionGracePeriod: time.Hour,
		MaxJSONRawLength: 1024, MaxFeedbackWatch: 50, Workers: 2, Clock: clock.RealClock{},
	}
	return p
}

func only(objs []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	for _, o := range objs {
		if o.GetName() == name {
			return []*unstructured.Unstructured{o}
		}
	}
	return nil
}

// start starts the agent.
func (p *place) start(t *testing.T) (stop func()) {
	t.Helper()
	return controllers.Start(t, p.connection, manager.Options{Cache: agent.CacheOptions()}, func(_ context.Context, mgr manager.Manager) error {
		return agent.Setup(mgr, p.config)
	})
}

// create creates a work of manifests in YAML, in which NS is the place's namespace.
func (p *place) create(t *testing.T, name, yamls string, change ...func(*workv1.ManifestWork)) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: p.cluster + "-" + name}}
	work.Spec.Workload.Manifests = p.manifests(t, yamls)
	for _, c := range change {
		c(work)
	}
	if err := p.hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	return work
}

func (p *place) manifests(t *testing.T, yamls string) []workv1.Manifest {
	t.Helper()
	var all []workv1.Manifest
	for document := range strings.SplitSeq(strings.ReplaceAll(yamls, "NS", p.cluster), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: data}})
	}
	return all
}

// change changes a work on the hub.
func (p *place) change(t *testing.T, work *workv1.ManifestWork, change func(*workv1.ManifestWork)) {
	t.Helper()
	await.Success(t, patience, "a change of "+work.Name, func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		change(work)
		return p.hub.Update(ctx, work)
	})
}

// reaches waits until the work has conditions, in the form "Applied=True", for its
// present generation.
func (p *place) reaches(t *testing.T, work *workv1.ManifestWork, conditions ...string) {
	t.Helper()
	await.Success(t, patience, work.Name+" is "+strings.Join(conditions, ", "), func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, wanted := range conditions {
			kind, state, _ := strings.Cut(wanted, "=")
			c := apimeta.FindStatusCondition(work.Status.Conditions, kind)
			if c == nil || string(c.Status) != state || c.ObservedGeneration != work.Generation {
				return errors.New(show(work))
			}
		}
		return nil
	})
}

func show(work *workv1.ManifestWork) string {
	data, _ := yaml.Marshal(work.Status)
	return string(data)
}

// manifestReaches waits until a manifest has a condition with a reason.
func (p *place) manifestReaches(t *testing.T, work *workv1.ManifestWork, ordinal int, kind, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	await.Success(t, patience, kind+" is "+reason, func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if len(work.Status.ResourceStatus.Manifests) <= ordinal {
			return errors.New(show(work))
		}
		c := apimeta.FindStatusCondition(work.Status.ResourceStatus.Manifests[ordinal].Conditions, kind)
		if c == nil || c.Reason != reason {
			return errors.New(show(work))
		}
		found = *c
		return nil
	})
	return found
}

// appliedOf returns the AppliedManifestWork of a work, nil if there is none.
func (p *place) appliedOf(ctx context.Context, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	applied := &workv1.AppliedManifestWork{}
	err := p.managed.Get(ctx, client.ObjectKey{Name: names.AppliedManifestWork(names.HubHash(hub.URL), work.Name)}, applied)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return applied, err
}

// configMap returns a ConfigMap of the place's namespace, nil if there is none.
func (p *place) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{}
	err := p.managed.Get(ctx, client.ObjectKey{Namespace: p.cluster, Name: name}, c)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return c, err
}

// holds waits until a ConfigMap is as described.
func (p *place) holds(t *testing.T, name string, described func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
	t.Helper()
	var found *corev1.ConfigMap
	await.Success(t, patience, "ConfigMap "+name+" is as described", func(ctx context.Context) (err error) {
		if found, err = p.configMap(ctx, name); err == nil && !described(found) {
			err = errors.New(strings.Join(describe(found), " "))
		}
		return err
	})
	return found
}

func describe(c *corev1.ConfigMap) []string {
	if c == nil {
		return []string{"missing"}
	}
	data, _ := yaml.Marshal(c)
	return []string{string(data)}
}

func exists(c *corev1.ConfigMap) bool  { return c != nil }
func missing(c *corev1.ConfigMap) bool { return c == nil }

// counter counts requests by method.
type counter struct {
	mu  sync.Mutex
	all []string
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper { return counted{c, next} }

func (c *counter) about(parts ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for _, request := range c.all {
		for _, part := range parts {
			if strings.Contains(request, part) {
				found = append(found, request)
				break
			}
		}
	}
	return found
}

type counted struct {
	*counter

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "" {
		c.mu.Lock()
		c.all = append(c.all, req.Method+" "+req.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}
