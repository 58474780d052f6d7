package tokens_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/installation"
)

const (
	// patience bounds every wait: a busy machine must not make a test fail.
	patience = await.Patience
	// audience is what workloads ask their tokens for.
	audience = "https://hub.example.com"
	// sharedIssuer is what kubeadm, kind, k3s and our control planes call
	// themselves.
	sharedIssuer = "https://kubernetes.default.svc.cluster.local"
)

// installing is done once.
var installing sync.Once

// installed puts onto the hub, once, what the operator would: the CRDs and the
// rights of the token authorizer.
func installed(t *testing.T) {
	t.Helper()
	installing.Do(func() {
		values := manifests.Hub{
			Name: names.ClusterManagerName, Namespace: names.HubNamespace, DockerConfig: []byte("{}"),
			TokenAuthorizer: &manifests.TokenAuthorizer{},
		}
		for _, render := range []func(manifests.Hub) ([]*unstructured.Unstructured, error){manifests.RenderHubCRDs, manifests.RenderHubBase} {
			objs, err := render(values)
			if err != nil {
				t.Fatal(err)
			}
			installation.Apply(t, hub.Client(t), "ocm.test", objs)
		}
	})
}

// cluster is a managed cluster: a control plane, and nothing of ours.
type cluster struct {
	*controlplane.ControlPlane

	admin client.Client
}

func newCluster(t *testing.T, options ...controlplane.Option) *cluster {
	t.Helper()
	return newClusterOn(t, controlplane.Lease(t, options...))
}

func newClusterOn(t *testing.T, cp *controlplane.ControlPlane) *cluster {
	t.Helper()
	return &cluster{ControlPlane: cp, admin: cp.Client(t)}
}

// account makes a ServiceAccount with its namespace.
func account(t *testing.T, c client.Client, namespace, name string) *corev1.ServiceAccount {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, sa} {
		if err := c.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return sa
}

// mint has an API server issue a token of a ServiceAccount, for an hour.
func (c *cluster) mint(t *testing.T, namespace, name string, audiences ...string) string {
	t.Helper()
	account(t, c.admin, namespace, name)
	return c.Token(t, namespace, name, authenticationv1.TokenRequestSpec{Audiences: audiences})
}

// target makes a ServiceAccount of the hub that the token authorizer may mint
// tokens of, as `kubectl ocm exchange rbac` grants it.
func target(t *testing.T, namespace, name string) {
	t.Helper()
	admin := hub.Client(t)
	account(t, admin, namespace, name)
	installation.Permit(t, admin, namespace, "{name}")
}

// authorizer is a running `kubectl ocm controller extauthz`.
type authorizer struct {
	// grpc is where it serves.
	grpc string
	ip   string
	args []string
	env  []string

	mu   sync.Mutex
	log  bytes.Buffer
	cmd  *exec.Cmd
	done chan struct{}
}

// binary is the command under test.
func binary() string { return filepath.Join("..", "..", "bin", "kubectl-ocm") }

// newAuthorizer starts a token authorizer at an address of its own, with the
// rights of the manifests, and stops it at the end of the test. It does not
// wait until it is ready.
func newAuthorizer(t *testing.T, args ...string) *authorizer {
	t.Helper()
	installed(t)
	kubeconfig := writeFile(t, "hub.kubeconfig", hub.KubeconfigFor(t, names.ServiceAccountUser(names.HubNamespace, names.TokenAuthorizer),
		"system:serviceaccounts", "system:serviceaccounts:"+names.HubNamespace, "system:authenticated"))
	ip := freeAddress(t)
	a := &authorizer{ip: ip, grpc: net.JoinHostPort(ip, "9001"), env: append(os.Environ(), "POD_NAMESPACE="+names.HubNamespace)}
	a.args = append([]string{"controller", "extauthz", "--kubeconfig=" + kubeconfig, "--bind-address=" + ip, "--addr=" + ip, "--port=9001", "--drain=0s"}, args...)
	t.Cleanup(func() {
		a.stop(t)
		if t.Failed() {
			a.mu.Lock()
			defer a.mu.Unlock()
			t.Logf("log of the authorizer at %s:\n%s", a.ip, tail(a.log.String()))
		}
	})
	a.start(t)
	return a
}

// start starts the process, also after it was killed.
func (a *authorizer) start(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary(), a.args...)
	cmd.Env = a.env
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			a.mu.Lock()
			a.log.WriteString(lines.Text() + "\n")
			a.mu.Unlock()
		}
		_ = cmd.Wait()
	}()
	a.cmd, a.done = cmd, done
}

// stop ends it as Kubernetes would, and has to succeed.
func (a *authorizer) stop(t *testing.T) {
	t.Helper()
	if a.cmd == nil {
		return
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.done:
	case <-clock.RealClock{}.After(patience):
		t.Error("the authorizer did not end")
		a.kill()
	}
	a.cmd = nil
}

// kill ends it with SIGKILL.
func (a *authorizer) kill() {
	_ = a.cmd.Process.Kill()
	<-a.done
}

// logged is what it wrote so far.
func (a *authorizer) logged() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

// ready waits until it takes requests.
func (a *authorizer) ready(t *testing.T) *authorizer {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		select {
		case <-a.done:
			t.Fatalf("the authorizer ended:\n%s", tail(a.logged()))
		default:
		}
		return a.readiness(ctx)
	})
	return a
}

// readiness is "" once it is ready, and otherwise what it says.
func (a *authorizer) readiness(ctx context.Context) string {
	if _, err := get(ctx, "http://"+a.ip+":8000/readyz?verbose"); err != nil {
		return err.Error()
	}
	return ""
}

// unasked is "" once it has decided requests.
func (a *authorizer) unasked(ctx context.Context) string {
	body, err := get(ctx, "http://"+a.ip+":8080/metrics")
	if err != nil {
		return err.Error()
	}
	if !strings.Contains(body, "ocm_extauthz_requests_total{") {
		return "it was not asked yet"
	}
	return ""
}

// get returns the body of a page.
func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(body))
	}
	return string(body), err
}

// freeAddress is a loopback address where nobody serves.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		ip := net.IPv4(127, byte(rand.IntN(250)+1), byte(rand.IntN(250)+1), byte(rand.IntN(250)+1)).String()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "9001"))
		if err == nil {
			_ = listener.Close()
			return ip
		}
	}
}

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func tail(log string) string {
	const most = 12 << 10
	return log[max(0, len(log)-most):]
}

// minted counts the tokens of a ServiceAccount of the hub that were issued, by
// the hub's audit log.
func minted(t *testing.T, namespace, name string) int {
	t.Helper()
	data, err := os.ReadFile(hub.AuditLog())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		var event struct {
			ObjectRef      struct{ Subresource, Namespace, Name string }
			ResponseStatus struct{ Code int }
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		if event.ObjectRef.Subresource == "token" && event.ObjectRef.Namespace == namespace && event.ObjectRef.Name == name && event.ResponseStatus.Code == http.StatusCreated {
			count++
		}
	}
	return count
}

// serviceAccount is a user name of the hub.
func serviceAccount(namespace, name string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
}
