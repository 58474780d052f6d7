package agent_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/interrupt"
)

// testLarge applies a work that is nearly as large as works may be.
func testLarge(t *testing.T, p *place) {
	t.Helper()
	p.start(t)
	content := strings.ReplaceAll(oneMap, "value", strings.Repeat("x", 245<<10))
	work := p.create(t, "app", content+"\n---"+strings.ReplaceAll(content, "name: one", "name: two"))
	p.reaches(t, work, "Applied=True", "Available=True")
	p.records(t, work, "one", "two")
}

// testIsolation has an agent look at, change and apply the works of another cluster.
func testIsolation(t *testing.T, p *place) {
	t.Helper()
	other := p.cluster + "-other"
	installation.Create(t, p.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})
	theirs := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: p.cluster + "-theirs"}}
	theirs.Spec.Workload.Manifests = p.manifests(t, oneMap)
	installation.Create(t, p.hub, theirs)
	agent := hub.ClientFor(t, hub.ConfigFor(t, names.AgentUser(p.cluster, "test"), names.ClusterGroup(p.cluster)))
	for what, err := range map[string]error{
		"read":                      agent.Get(t.Context(), client.ObjectKeyFromObject(theirs), &workv1.ManifestWork{}),
		"list":                      agent.List(t.Context(), &workv1.ManifestWorkList{}),
		"list of the other cluster": agent.List(t.Context(), &workv1.ManifestWorkList{}, client.InNamespace(other)),
		"change":                    agent.Update(t.Context(), theirs.DeepCopy()),
		"report":                    agent.Status().Update(t.Context(), theirs.DeepCopy()),
		"create":                    agent.Create(t.Context(), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster, Name: "mine"}, Spec: theirs.Spec}),
		"delete":                    agent.Delete(t.Context(), theirs.DeepCopy()),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	p.start(t)
	ours := p.create(t, "ours", strings.ReplaceAll(oneMap, "name: one", "name: two"))
	p.reaches(t, ours, "Applied=True", "Available=True")
	p.finds(t, "one", missing)
}

// gateway is a hub that writes can be cut off from.
type gateway struct {
	*httptest.Server

	transport atomic.Pointer[http.RoundTripper]
}

// RoundTrip implements http.RoundTripper.
func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	return (*g.transport.Load()).RoundTrip(req)
}

// newGateway puts a gateway between the hub and the agent of a place.
func newGateway(t *testing.T, p *place) *gateway {
	t.Helper()
	address, err := url.Parse(hub.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{}
	g.pass(t, p, nil)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }, Transport: g, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.Server = httptest.NewUnstartedServer(proxy)
	g.StartTLS()
	t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{
		Server: g.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}),
	}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: "unused"}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "agent"}
	config.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*config, p.config.HubKubeconfig); err != nil {
		t.Fatal(err)
	}
	p.hubURL = g.URL
	return g
}

// pass lets the agent write to the hub; writes can be nil.
func (g *gateway) pass(t *testing.T, p *place, writes *interrupt.Writes) {
	t.Helper()
	config := hub.ConfigFor(t, names.AgentUser(p.cluster, "test"), names.ClusterGroup(p.cluster))
	transport, err := rest.TransportFor(restCopy(config, writes))
	if err != nil {
		t.Fatal(err)
	}
	g.transport.Store(&transport)
}

// testCutFromHub kills the agent after each write to the hub in the life of a work.
func testCutFromHub(t *testing.T, p *place) {
	t.Helper()
	g := newGateway(t, p)
	for n := 1; ; n++ {
		writes := interrupt.After(n, "any", anything)
		g.pass(t, p, writes)
		stop := p.start(t)
		work := p.create(t, "app", twoMaps)
		done := p.live(t, work, stop, writes, func() { g.pass(t, p, nil) })
		p.finds(t, "one", missing)
		p.finds(t, "two", missing)
		if done {
			return
		}
	}
}

// TestTwoHubs has the agents of two hubs on one managed cluster, with works of one name
// and an object that both have.
func TestTwoHubs(t *testing.T) {
	t.Parallel()
	managed, second := controlplane.Lease(t), controlplane.Lease(t)
	a, b := newPlace(t, hub, managed, "two-hubs"), newPlace(t, second, managed, "two-hubs")
	b.cluster, b.config.Cluster = a.cluster, a.cluster
	installation.Create(t, b.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.cluster}})
	grant(t, b.hub, a.cluster)
	write(t, b.config.HubKubeconfig, second.KubeconfigFor(t, names.AgentUser(a.cluster, "test"), names.ClusterGroup(a.cluster)))
	a.start(t)
	stop := b.start(t)
	first := a.create(t, "app", twoMaps)
	other := b.create(t, "app", strings.ReplaceAll(twoMaps, "name: two", "name: three"))
	a.reaches(t, first, "Applied=True", "Available=True")
	b.reaches(t, other, "Applied=True", "Available=True")
	a.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && len(c.OwnerReferences) == 2 })
	if err := a.hub.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	a.gone(t, first)
	a.finds(t, "two", missing)
	a.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && len(c.OwnerReferences) == 1 })
	b.records(t, other, "one", "three")
	stop()
	// The agent of the first hub changes to the second: what it applied stays for a while.
	again := a.create(t, "left", strings.ReplaceAll(oneMap, "name: one", "name: two"))
	a.reaches(t, again, "Applied=True", "Available=True")
	write(t, a.config.HubKubeconfig, second.KubeconfigFor(t, names.AgentUser(a.cluster, "test"), names.ClusterGroup(a.cluster)))
	await.Success(t, patience, "the beginning of an eviction", func(ctx context.Context) error {
		applied, err := a.appliedOf(ctx, again)
		if err == nil && (applied == nil || applied.Status.EvictionStartTime == nil) {
			err = errors.New("it has not begun")
		}
		return err
	})
	a.finds(t, "two", exists)
}

// TestOutage restarts both API servers, and changes something while either is away.
func TestOutage(t *testing.T) {
	t.Parallel()
	ours, managed := controlplane.Start(t), controlplane.Start(t)
	p := newPlace(t, ours.ControlPlane, managed.ControlPlane, "outage")
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")

	ours.StopAPIServer(t)
	p.edit(t, "one", `{"data":{"key":"other"}}`)
	p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "value" })
	ours.StartAPIServer(t)

	managed.StopAPIServer(t)
	p.change(t, work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = p.manifests(t, oneMap+"\nimmutable: false") })
	managed.StartAPIServer(t)
	p.finds(t, "two", missing)
	p.reaches(t, work, "Applied=True", "Available=True")
	if err := p.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	p.gone(t, work)
	p.finds(t, "one", missing)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// grant gives the agents of a cluster the permissions that the hub controller gives them
// when the cluster is accepted.
func grant(tb testing.TB, admin client.Client, cluster string) {
	tb.Helper()
	installation.Create(tb, admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "work"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
			{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
			{APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks/status"}, Verbs: []string{"patch", "update"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "work"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "work"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: names.ClusterGroup(cluster)}},
		})
}
