// Package tokenauthorizer_test tests the token authorizer as a whole, on real API servers: how
// configurations and keys come in, what requests then get, and what the role reports.
// Each part's own tests are beside its code.
package tokenauthorizer_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controllers"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

const (
	issuer   = "https://kubernetes.default.svc.cluster.local"
	audience = "https://hub.example.com"
	patience = await.Patience
)

// hub is a real hub, and stands for a managed cluster as well.
var hub *controlplane.ControlPlane

func TestMain(m *testing.M) { controlplane.Main(m, &hub) }

// world is a running role, and a workload "reader" in a namespace that the
// managed cluster and the hub both have.
type world struct {
	namespace string
	// wrap, if set before start, is around the role's connection to the hub.
	wrap transport.WrapperFunc

	socket   string
	stop     func()
	logs     *logs
	metrics  *prometheus.Registry
	observed *observed
	checks   authv3.AuthorizationClient
	health   healthv1.HealthClient
}

// observed is a manager that keeps what the role tells through it.
type observed struct {
	manager.Manager

	handlers map[string]http.Handler
	ready    healthz.Checker
}

func (o *observed) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	o.handlers[path] = handler
	return nil
}

func (o *observed) AddReadyzCheck(_ string, check healthz.Checker) error {
	o.ready = check
	return nil
}

// logs keeps lines.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{})
}

func (l *logs) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// newWorld makes the namespace, the workload, and the right to mint for it.
func newWorld(t *testing.T) *world {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "app-"}}
	w := &world{logs: &logs{}}
	w.create(t, namespace)
	w.namespace = namespace.Name
	w.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "reader"}})
	installation.Permit(t, hub.Client(t), w.namespace, "reader")
	return w
}

func (w *world) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := hub.Client(t).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// start runs the role with the rights of its ServiceAccount, until the test ends.
func (w *world) start(t *testing.T, source tokenauthorizer.Source, options manager.Options) {
	t.Helper()
	w.socket = filepath.Join(t.TempDir(), "s")
	w.metrics = prometheus.NewRegistry()
	connection := hub.ConfigForAccount(t, names.HubNamespace, names.TokenAuthorizer)
	connection.Wrap(w.wrap)
	w.stop = controllers.Start(t, connection, options, func(ctx context.Context, mgr manager.Manager) error {
		w.observed = &observed{Manager: mgr, handlers: map[string]http.Handler{}}
		return tokenauthorizer.Setup(ctx, w.observed, tokenauthorizer.Config{
			Source: source, Server: server.Config{Endpoints: server.Endpoints{Unix: w.socket}},
			Hub: connection, Clock: clock.RealClock{}, Log: w.logs.logger(), Metrics: w.metrics,
		})
	})
	conn, err := grpc.NewClient("unix:"+w.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w.checks, w.health = authv3.NewAuthorizationClient(conn), healthv1.NewHealthClient(conn)
}

// startReady is start, and waits until the role is ready.
func (w *world) startReady(t *testing.T, source tokenauthorizer.Source) {
	t.Helper()
	w.start(t, source, manager.Options{})
	await.Success(t, patience, "the role is ready", func(context.Context) error { return w.observed.ready(nil) })
	await.Condition(t, patience, "health checks say so", func(ctx context.Context) (bool, error) { return w.serving(ctx), nil })
}

func (w *world) serving(ctx context.Context) bool {
	state, err := w.health.Check(ctx, &healthv1.HealthCheckRequest{Service: server.ServiceName})
	return err == nil && state.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

// token is one of the workload's, minted by the managed cluster.
func (w *world) token(t *testing.T, audiences ...string) string {
	t.Helper()
	return hub.Token(t, w.namespace, "reader", authenticationv1.TokenRequestSpec{Audiences: audiences})
}

// check asks for a decision, as Envoy does. It returns the HTTP status with
// which the client would be refused, 200 for none and 503 for a failed call, and
// the token with which the request goes on.
func (w *world) check(ctx context.Context, token string) (status int, issued string) {
	response, err := w.checks.Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/api/v1/pods", Headers: map[string]string{"authorization": "Bearer " + token},
		}},
	}})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, ""
	case response.GetOkResponse() != nil:
		return http.StatusOK, strings.TrimPrefix(response.GetOkResponse().GetHeaders()[0].GetHeader().GetValue(), "Bearer ")
	default:
		return int(response.GetDeniedResponse().GetStatus().GetCode()), ""
	}
}

// becomes fails unless the request goes on as that user of the hub.
func (w *world) becomes(t *testing.T, token, user string) {
	t.Helper()
	status, issued := w.check(t.Context(), token)
	if status != http.StatusOK {
		t.Fatalf("refused with %d", status)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := hub.ClientFor(t, hub.ConfigForToken(issued)).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if got := review.Status.UserInfo.Username; got != user {
		t.Errorf("the hub says %s, want %s", got, user)
	}
}

// turns waits until a request is answered with a status.
func (w *world) turns(t *testing.T, token string, want int) {
	t.Helper()
	got := 0
	await.Condition(t, patience, "a request is answered otherwise", func(ctx context.Context) (bool, error) {
		got, _ = w.check(ctx, token)
		return got == want, nil
	}, func() any { return got })
}

// status is what /clusters tells.
func (w *world) status(t *testing.T) tokenauthorizer.Status {
	t.Helper()
	var out tokenauthorizer.Status
	if err := json.Unmarshal([]byte(w.get(t, "/clusters", http.StatusOK)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// get asks the port of the metrics.
func (w *world) get(t *testing.T, target string, status int) string {
	t.Helper()
	path, _, _ := strings.Cut(target, "?")
	recorder := httptest.NewRecorder()
	w.observed.handlers[path].ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	if recorder.Code != status {
		t.Errorf("%s: got %d, want %d: %s", target, recorder.Code, status, recorder.Body)
	}
	return recorder.Body.String()
}

// gauge is a metric without labels.
func (w *world) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Errorf("no metric %s", name)
	return -1
}

// file has rules for namespaces, which become the same on the hub.
func (w *world) file(t *testing.T, namespaces string) string {
	t.Helper()
	return `
defaults: {audiences: [` + audience + `]}
clusters:
- name: cluster1
  issuer: ` + issuer + `
  keys: {jwks: ` + string(hub.KeySet(t)) + `}
  allow:
  - namespaces: [` + namespaces + `]
    mapTo: {namespace: "{namespace}", name: "{name}"}
`
}

// openFile is one in tokensmith's form, without a policy.
func (w *world) openFile(t *testing.T) string {
	t.Helper()
	return "clusters:\n- name: workload-cluster-1\n  issuer: " + issuer + "\n  jwks_data: " + string(hub.KeySet(t)) + "\n"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) user() string { return names.ServiceAccountUser(w.namespace, "reader") }

// endpoints are those of a server that shall not start.
func endpoints(t *testing.T) server.Config {
	t.Helper()
	return server.Config{Endpoints: server.Endpoints{Unix: filepath.Join(t.TempDir(), "s")}}
}
