package publish_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/issuer/publish"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

const patience = await.Patience

// Paths of an API server.
const (
	discovery = "/.well-known/openid-configuration"
	keys      = "/openid/v1/jwks"
)

// plane is hub and managed cluster of every test; each has its own namespaces.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	controlplane.Main(m, &plane)
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

// counted is a clock that only the test moves and that counts how often a
// change on the hub was left to settle.
type counted struct {
	*clocktesting.FakeClock

	settles atomic.Int32
}

// NewTimer implements clock.Clock.
func (c *counted) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d == publish.Settle {
		c.settles.Add(1)
	}
	return timer
}

// place is one cluster and its place on the hub.
type place struct {
	cluster  string
	admin    client.Client
	clock    *counted
	registry *prometheus.Registry
	managed  *answers
	writes   *interrupt.Writes
	reports  *recorder
}

// newPlace makes the namespaces and the rights of a cluster: on the managed side
// those of our manifests, on the hub those that the agents' shared role has.
func newPlace(t *testing.T, cluster string) *place {
	t.Helper()
	p := &place{
		cluster: cluster, admin: plane.Client(t), clock: &counted{FakeClock: clocktesting.NewFakeClock(time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC))},
		managed: &answers{}, writes: interrupt.Count(every), reports: &recorder{},
	}
	values := manifests.Klusterlet{Name: cluster, Namespace: p.account().Namespace, DockerConfig: []byte("{}"), PublishIssuer: true}
	base, err := manifests.RenderKlusterletBase(values)
	installation.Some(t, p.admin, base, err, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	crds, err := manifests.RenderHubCRDs(manifests.Hub{Name: names.ClusterManagerName, Namespace: names.HubNamespace})
	installation.Some(t, p.admin, crds, err, installation.CRD)
	own := names.ClusterGroup(cluster)
	installation.Create(t, p.admin,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: own}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: []string{cluster}, Verbs: []string{"get"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: own},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: own}},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "agent"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{names.IssuerConfigMap},
			Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}}},
		p.binding(), p.member())
	return p
}

func (p *place) binding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: names.ClusterGroup(p.cluster)}},
	}
}

// member is the cluster on the hub.
func (p *place) member() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: p.cluster}}
}

// decides is what the hub would decide, had it accepted the cluster.
func (p *place) decides(t *testing.T) keytrust.Decision {
	t.Helper()
	live := p.member()
	if err := p.admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	cluster := keytrust.ClusterOf(live)
	cluster.Accepted, cluster.Joined = true, true
	return keytrust.Decide(keytrust.Candidate{Cluster: cluster, Data: p.published(t).Data}, func(string) []keytrust.Candidate { return nil })
}

func every(string, string) bool { return true }

func (p *place) account() types.NamespacedName {
	return types.NamespacedName{Namespace: names.AgentNamespacePrefix + p.cluster, Name: names.RegistrationAgentServiceAccount(p.cluster)}
}

// source is the managed cluster as its agent sees it.
func (p *place) source(t *testing.T) *publish.Source {
	t.Helper()
	connection := plane.ConfigForAccount(t, p.account().Namespace, p.account().Name)
	connection.Wrap(p.managed.wrap)
	source, err := publish.NewSource(connection, p.account())
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func (p *place) config(t *testing.T) publish.Config {
	t.Helper()
	p.registry = prometheus.NewRegistry()
	hub := plane.ConfigFor(t, names.AgentUser(p.cluster, "a1"), names.ClusterGroup(p.cluster), names.GroupManagedClusters, "system:authenticated")
	hub.Wrap(p.writes.Wrap)
	return publish.Config{
		Cluster: p.cluster, Hub: hub, Source: p.source(t), Report: p.reports, Metrics: publish.NewMetrics(p.registry), Clock: p.clock, Log: logr.Discard(),
	}
}

// start publishes until stop or the end of the test.
func (p *place) start(t *testing.T) (stop func()) {
	t.Helper()
	publisher, err := publish.New(p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return run(t, publisher)
}

func run(t *testing.T, r manager.Runnable) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// published returns the ConfigMap on the hub, nil for none.
func (p *place) published(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	var m corev1.ConfigMap
	err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: p.cluster, Name: names.IssuerConfigMap}, &m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	await.Success(t, patience, what, func(context.Context) error { return done() })
}

// checks waits until the cluster was looked at n times with a result.
func (p *place) checks(t *testing.T, result string, n float64) {
	t.Helper()
	eventually(t, result, func() error {
		if got := p.counter(t, result); got < n {
			return errors.New("not yet")
		}
		return nil
	})
}

func (p *place) counter(t *testing.T, result string) float64 {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ocm_issuer_publish_checks_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", result)
	return 0
}

// later lets the time pass until the next look.
func (p *place) later(t *testing.T) {
	t.Helper()
	eventually(t, "the publisher to rest", func() error {
		if !p.clock.HasWaiters() {
			return errors.New("not yet")
		}
		return nil
	})
	p.clock.Step(2 * time.Minute)
}

// recorder stores what was reported.
type recorder struct {
	mu        sync.Mutex
	last      metav1.Condition
	withdrawn atomic.Bool
}

func (r *recorder) Report(_ context.Context, c metav1.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = c
}

func (r *recorder) Withdrawn(context.Context) { r.withdrawn.Store(true) }

// says waits until users are told a reason, with words in the message.
func (p *place) says(t *testing.T, reason string, words ...string) {
	t.Helper()
	eventually(t, "users to see "+reason, func() error {
		p.reports.mu.Lock()
		defer p.reports.mu.Unlock()
		for _, word := range words {
			if !strings.Contains(p.reports.last.Message, word) {
				return errors.New(p.reports.last.Reason + ": " + p.reports.last.Message)
			}
		}
		if p.reports.last.Reason != reason || (p.reports.last.Status == metav1.ConditionTrue) != (reason == names.ReasonIssuerPublished) {
			return errors.New(p.reports.last.Reason + ": " + p.reports.last.Message)
		}
		return nil
	})
}

// answers replace what the managed cluster's API server says at a path; what
// they do not name is real.
type answers struct {
	mu   sync.Mutex
	body map[string][]byte
}

// set replaces the answer at a path; nil is "404 Not Found".
func (a *answers) set(path string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.body == nil {
		a.body = map[string][]byte{}
	}
	a.body[path] = body
}

func (a *answers) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.body = nil
}

func (a *answers) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		a.mu.Lock()
		body, ok := a.body[req.URL.Path]
		a.mu.Unlock()
		if !ok {
			return next.RoundTrip(req)
		}
		status := http.StatusOK
		if body == nil {
			status = http.StatusNotFound
		}
		return &http.Response{
			StatusCode: status, Request: req, Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// klusterlet makes a Klusterlet of the place's name.
func (p *place) klusterlet(t *testing.T) {
	t.Helper()
	operator, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{Name: p.cluster, Spec: operatorv1.KlusterletSpec{Namespace: p.account().Namespace}})
	installation.Some(t, p.admin, operator, err, installation.CRD)
	installation.Create(t, p.admin, &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: p.cluster}})
}
