package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
)

// patience is far above what anything takes: the machine may be busy.
const patience = await.Patience

// hub is the hub of every test; each has a cluster of its own on it, also when tests are
// repeated.
var (
	hub    *controlplane.ControlPlane
	places atomic.Int32
)

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
	managed := controlplane.Lease(t)
	for name, test := range map[string]func(*testing.T, *place){
		"applies":           testApplies,
		"update":            testUpdate,
		"filled-in":         testFilledIn,
		"left-manifest":     testLeftManifest,
		"contested":         testContested,
		"retained":          testRetained,
		"two-managers":      testTwoManagers,
		"odd-values":        testOddValues,
		"served-version":    testServedVersion,
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
		"taken-over":        testTakenOver,
		"made-up":           testMadeUp,
		"lost-permissions":  testLostPermissions,
		"hidden":            testHidden,
		"eviction":          testEviction,
		"feedback":          testFeedback,
		"unreported":        testUnreported,
		"complete":          testComplete,
		"ready":             testReady,
		"ready-custom":      testReadyCustom,
		"finished":          testFinished,
		"requests":          testRequests,
		"interrupted":       testInterrupted,
		"abandoned":         testAbandoned,
		"kubeconfig":        testKubeconfig,
		"replaced":          testReplaced,
		"events":            testEvents,
		"paths":             testPaths,
		"rules":             testRules,
		"large":             testLarge,
		"isolation":         testIsolation,
		"cut-from-hub":      testCutFromHub,
		"rejoin":            testRejoin,
		"copied":            testCopied,
		"unrecorded":        testUnrecorded,
		"forbidden":         testForbidden,
		"reviews":           testReviews,
		"denied-watch":      testDeniedWatch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlace(t, hub, managed, name))
		})
	}
}

// place is one cluster: its namespace on the hub, and a namespace of the same name on
// the managed cluster.
type place struct {
	cluster string
	// hubURL is the address of the hub in the agent's kubeconfig.
	hubURL     string
	hub        client.Client
	managed    client.Client
	connection *rest.Config
	config     agent.Config
	metrics    *prometheus.Registry
}

func newPlace(t *testing.T, hub, managed *controlplane.ControlPlane, name string) *place {
	t.Helper()
	return newPlaceOn(t, hub, managed, name, grant)
}

// newPlaceOn returns a place whose hub accepts its cluster in another way.
func newPlaceOn(t *testing.T, hub, managed *controlplane.ControlPlane, name string, accept func(tb testing.TB, admin client.Client, cluster string)) *place {
	t.Helper()
	cluster := fmt.Sprintf("%s-%d", name, places.Add(1))
	p := &place{
		cluster: cluster, hubURL: hub.URL, hub: hub.Client(t), managed: managed.Client(t),
		connection: managed.ConfigForAccount(t, names.AgentNamespace, "klusterlet-work-sa"),
	}
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace})
	installation.Some(t, p.hub, only(crds, "manifestworks.work.open-cluster-management.io"), err, installation.CRD)
	crds, err = manifests.RenderKlusterletCRDs(manifests.Klusterlet{Name: cluster, Namespace: names.AgentNamespace})
	installation.Some(t, p.managed, only(crds, "appliedmanifestworks.work.open-cluster-management.io"), err, installation.CRD)
	permit(t, p.managed)
	accept(t, p.hub, cluster)
	installation.Create(t, p.managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, hub.KubeconfigFor(t, names.AgentUser(cluster, "test"), names.ClusterGroup(cluster)))
	p.config = agent.Config{
		Cluster: cluster, AgentID: "agent-" + cluster, HubKubeconfig: file,
		StatusSyncInterval: 200 * time.Millisecond, ReviewInterval: time.Hour, EvictionGracePeriod: time.Hour,
		MaxJSONRawLength: 1024, MaxFeedbackWatch: 50, Rules: status.NewRules(), Workers: 2, Clock: clock.RealClock{},
	}
	return p
}

// permit gives the agents of a cluster the permissions that join gives them, and what a
// user adds for a kind of their own.
func permit(t *testing.T, admin client.Client) {
	t.Helper()
	objs, err := manifests.RenderKlusterletWork(manifests.Klusterlet{
		Name: "klusterlet", Namespace: names.AgentNamespace, Work: &manifests.WorkAgent{Permissions: names.WorkPermissionsAdmin},
	})
	installation.Create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.AgentNamespace}})
	installation.Some(t, admin, objs, err, "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	aggregate(t, admin, "test.example.com")
	// A controller gathers the rules.
	awaitPermission(t, admin, "", "configmaps")
	awaitPermission(t, admin, rbacv1.GroupName, "clusterroles")
	awaitPermission(t, admin, "test.example.com", "lates")
}

// permitAll gives the agents the permissions that a user adds for a group of their own.
func (p *place) permitAll(t *testing.T, group string) {
	t.Helper()
	aggregate(t, p.managed, group)
	awaitPermission(t, p.managed, group, "all")
}

func aggregate(t *testing.T, admin client.Client, group string) {
	t.Helper()
	installation.Create(t, admin, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: group, Labels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	})
}

func awaitPermission(t *testing.T, admin client.Client, group, resource string) {
	t.Helper()
	await.Condition(t, patience, "permissions on "+group, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               names.ServiceAccountUser(names.AgentNamespace, "klusterlet-work-sa"),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "create"},
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
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
		p.metrics = prometheus.NewRegistry()
		p.config.Metrics = p.metrics
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
			return fmt.Errorf("%w, before: %s", err, show(work))
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

// says waits until a condition of a manifest contains a text, and returns it.
func (p *place) says(t *testing.T, work *workv1.ManifestWork, kind, text string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	await.Success(t, patience, kind+" says "+text, func(ctx context.Context) error {
		if err := p.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, m := range work.Status.ResourceStatus.Manifests {
			if c := apimeta.FindStatusCondition(m.Conditions, kind); c != nil && strings.Contains(c.Message, text) {
				found = *c
				return nil
			}
		}
		return errors.New(show(work))
	})
	return found
}

// appliedOf returns the AppliedManifestWork of a work, nil if there is none.
func (p *place) appliedOf(ctx context.Context, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, error) {
	applied := &workv1.AppliedManifestWork{}
	err := p.managed.Get(ctx, client.ObjectKey{Name: names.AppliedManifestWork(names.HubHash(p.hubURL), work.Name)}, applied)
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

// finds waits until a ConfigMap is as described.
func (p *place) finds(t *testing.T, name string, described func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
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
