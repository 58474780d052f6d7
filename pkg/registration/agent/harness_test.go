package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver/csr"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

// patience is far above what anything takes: the machine may be busy.
const patience = await.Patience

// managed is the managed cluster of every test; each test has its own agent
// namespace on it.
var managed *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	listenToClients()
	// The tests wait more than they work.
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	controlplane.Main(m, &managed)
	// Every agent was stopped: nothing of one may go on. Connections that are
	// kept open are of the tests' own clients.
	if err := controlplane.Leaks(); err != nil {
		panic(err)
	}
}

func eventually(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	await.Success(t, patience, what, func(context.Context) error {
		ok, err := done()
		if err == nil && !ok {
			err = errors.New("not yet")
		}
		return err
	})
}

func install(t *testing.T, c client.Client, objs []*unstructured.Unstructured, err error, kinds ...string) {
	t.Helper()
	installation.Some(t, c, objs, err, kinds...)
}

const crd = installation.CRD

// spoke is the managed cluster of one test.
type spoke struct {
	plane     *controlplane.ControlPlane
	namespace string
	cluster   string
	hubDir    string
	config    agent.Config
	admin     client.Client
	// logger is the agent's; by default there is one in verbose tests only.
	logger logr.Logger
	// wrap is for the requests of the agent to the managed cluster, nil for none.
	wrap func(http.RoundTripper) http.RoundTripper
}

// newSpoke prepares an agent namespace with the RBAC of our manifests, and a
// bootstrap kubeconfig for hub.
func newSpoke(t *testing.T, h *hub, cluster string) *spoke {
	t.Helper()
	return newSpokeOn(t, managed, h, cluster)
}

// taken are the names of the clusters whose tests are running: two that share a
// managed cluster must not share a namespace there.
var taken sync.Map

func newSpokeOn(t *testing.T, plane *controlplane.ControlPlane, h *hub, cluster string) *spoke {
	t.Helper()
	if by, twice := taken.LoadOrStore(cluster, t.Name()); twice {
		t.Fatalf("the cluster %s is that of %s", cluster, by)
	}
	t.Cleanup(func() { taken.Delete(cluster) })
	admin := plane.Client(t)
	s := &spoke{plane: plane, namespace: "open-cluster-management-" + cluster, cluster: cluster, hubDir: filepath.Join(t.TempDir(), "hub"), admin: admin}
	operator, err := manifests.RenderKlusterletOperator(manifests.KlusterletOperator{Name: cluster, Spec: operatorv1.KlusterletSpec{Namespace: s.namespace}})
	install(t, admin, operator, err, crd)
	values := manifests.Klusterlet{Name: cluster, Namespace: s.namespace, DockerConfig: []byte("{}")}
	crds, err := manifests.RenderKlusterletCRDs(values)
	install(t, admin, crds, err, crd)
	base, err := manifests.RenderKlusterletBase(values)
	install(t, admin, base, err, "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
	create(t, admin, &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	t.Cleanup(func() { s.clear(t) })
	s.config = agent.Config{
		Namespace:    s.namespace,
		Names:        agent.Names{Cluster: cluster, Klusterlet: cluster},
		Secrets:      agent.Secrets{Bootstrap: names.BootstrapHubKubeconfigSecret, Hub: names.HubKubeconfigSecret, HubDir: s.hubDir},
		Claims:       &status.ClaimRules{MaxCustom: 20},
		HealthPeriod: time.Minute,
		Clock:        clock.RealClock{},
	}
	s.config.NewDriver = func(id driver.Identity) driver.Agent {
		return csr.NewAgent(csr.AgentConfig{Identity: id, Clock: s.config.Clock})
	}
	if h != nil {
		s.setBootstrap(t, h.bootstrapKubeconfig(t))
	}
	return s
}

// clear removes what an agent has stored: the test may run once more.
func (s *spoke) clear(t *testing.T) {
	t.Helper()
	for _, stored := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		if err := s.admin.DeleteAllOf(context.WithoutCancel(t.Context()), stored, client.InNamespace(s.namespace)); err != nil {
			t.Errorf("clear the agent's namespace: %v", err)
		}
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	installation.Create(t, c, objects...)
}

func (s *spoke) setBootstrap(t *testing.T, kubeconfig []byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: names.BootstrapHubKubeconfigSecret}}
	_, err := ctrl.CreateOrUpdate(t.Context(), s.admin, secret, func() error {
		secret.Data = map[string][]byte{"kubeconfig": kubeconfig}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *spoke) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &secret
}

// process is one run of the agent.
type process struct {
	agent    *agent.Agent
	registry *prometheus.Registry
	stop     func()
	done     chan struct{}
	crash    *crash
}

// crash ends a process at once after its nth write to the managed cluster:
// whatever it tries afterwards fails. 0 is never.
type crash struct {
	after int
	kill  context.CancelFunc

	mu     sync.Mutex
	writes []string
}

// mortal is a connection of a process that crashes.
type mortal struct {
	*crash

	next http.RoundTripper
}

func (c mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	write := r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "klusterlets")
	if c.after > 0 && len(c.wrote()) >= c.after {
		return nil, errors.New("the process is dead")
	}
	resp, err := c.next.RoundTrip(r)
	if !write || err != nil || resp.StatusCode >= http.StatusBadRequest {
		return resp, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, r.Method+" "+path.Base(r.URL.Path))
	if len(c.writes) == c.after {
		c.kill()
	}
	return resp, err
}

// wrote lists what was written as "METHOD name", where a creation has the resource
// in the name's place.
func (c *crash) wrote() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// awaitCrash waits until a process is dead, and checks what it has written.
func (p *process) awaitCrash(t *testing.T, want ...string) {
	t.Helper()
	select {
	case <-p.done:
	case <-after(patience):
		t.Fatalf("it did not crash; it wrote %q", p.crash.wrote())
	}
	if got := p.crash.wrote(); !slices.Equal(got, want) {
		t.Fatalf("it crashed after %q, want %q", got, want)
	}
}

// start runs the agent as its ServiceAccount until stop or the end of the test.
func (s *spoke) start(t *testing.T) *process {
	t.Helper()
	return s.startUntil(t, 0)
}

func (s *spoke) startUntil(t *testing.T, writes int) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	restConfig := s.plane.ConfigFor(t, names.ServiceAccountUser(s.namespace, names.RegistrationAgentServiceAccount(s.cluster)), "system:serviceaccounts", "system:authenticated")
	p := &process{registry: prometheus.NewRegistry(), done: make(chan struct{}), crash: &crash{after: writes, kill: cancel}}
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return mortal{p.crash, next}
	})
	if s.wrap != nil {
		restConfig.Wrap(s.wrap)
	}
	logger := s.logger
	if logger.IsZero() && testing.Verbose() {
		logger = testLogger(t)
	}
	mgr, err := ctrl.NewManager(restConfig, controllers.Options(manager.Options{Logger: logger, Cache: agent.CacheOptions(s.namespace)}))
	if err != nil {
		t.Fatal(err)
	}
	if p.agent, err = agent.Setup(mgr, p.registry, s.config); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		if err := mgr.Start(ctx); err != nil && writes == 0 {
			t.Errorf("the agent ended: %v", err)
		}
	}()
	p.stop = func() { cancel(); <-p.done }
	t.Cleanup(p.stop)
	return p
}

func (p *process) reaches(t *testing.T, phase agent.Phase) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return p.agent.Report().Phase == phase, nil
	})
	if err != nil {
		t.Fatalf("wait for phase %s: %v; it is %+v", phase, err, p.agent.Report())
	}
}

func (p *process) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	value, ok, err := p.gathered(name, labels...)
	if err != nil || !ok {
		t.Fatalf("no metric %s %v: %v", name, labels, err)
	}
	return value
}

// gathered returns the value of a metric, and whether there is one.
func (p *process) gathered(name string, labels ...string) (value float64, ok bool, err error) {
	families, err := p.registry.Gather()
	if err != nil {
		return 0, false, err
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if len(labels) == 0 || m.GetLabel()[0].GetValue() == labels[0] {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true, nil
			}
		}
	}
	return 0, false, nil
}

// The tests run in real time, under a name that shows it.

func now() time.Time { return clock.RealClock{}.Now() }

func after(d time.Duration) <-chan time.Time { return clock.RealClock{}.After(d) }

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// restConfigOf is the connection that a kubeconfig and the files beside it make.
func restConfigOf(t *testing.T, path string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
