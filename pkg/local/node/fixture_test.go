package node_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	// role says what the test binary does as the entrypoint of a container.
	role     = "NODE_TEST_ROLE"
	image    = "example.com/tests"
	patience = await.Patience
)

var cp *controlplane.ControlPlane

// fixture is a namespace and a node of its own on the shared control plane.
type fixture struct {
	client.Client
	name string
	dir  string
	// stop ends the node as a crash of its process would, as far as the API sees.
	stop func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Client: cp.Client(t), dir: t.TempDir()}
	// A name of its own for every run: tests may be repeated.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: strings.ToLower(strings.TrimPrefix(t.Name(), "Test")) + "-",
	}}
	if err := f.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	f.name = namespace.Name
	f.startNode(t)
	eventually(t, "the default service account", func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	return f
}

func (f *fixture) startNode(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := node.ReserveAddresses(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	group := process.NewGroup()
	cert, key := cp.ServingCert(t, f.name, net.ParseIP(addresses.NodeIP()))
	n, err := node.New(node.Config{
		Name: f.name, Dir: f.dir, Version: "v1.36.0-local",
		API:        cp.ConfigFor(t, node.UserName(f.name), node.Group),
		ServerHost: server.Hostname(), ServerPort: server.Port(),
		Server:   kubelet.Config{Client: "kube-apiserver-kubelet-client", ClientCA: cp.CAData, Cert: cert, Key: key},
		Images:   node.Images{image: self},
		Launcher: sandbox.Launcher{Group: group, Self: []string{self, "enter"}},
		Clock:    clock.RealClock{}, Log: logr.Discard(),
	}, addresses)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
		group.Close()
	}
	t.Cleanup(f.stop)
}

// pod returns a Pod for the scheduler to bind to the fixture's node.
func (f *fixture) pod(name string, container corev1.Container) *corev1.Pod {
	container.Name, container.Image = "main", image+":v1"
	container.Env = append(container.Env, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
	}})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: f.name},
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers:                    []corev1.Container{container},
		},
	}
}

func as(r string) []corev1.EnvVar { return []corev1.EnvVar{{Name: role, Value: r}} }

func (f *fixture) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := f.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// await waits until the Pod is as wanted and returns it.
func (f *fixture) await(t *testing.T, name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := f.Get(ctx, client.ObjectKey{Namespace: f.name, Name: name}, pod)
		return err == nil && done(pod), client.IgnoreNotFound(err)
	})
	if err != nil {
		status, _ := json.MarshalIndent(pod.Status, "", " ")
		t.Fatalf("wait until %s: %v; the Pod's status is %s", what, err, status)
	}
	return pod
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *fixture) get(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+pod.Status.PodIP+":8000"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func logsOf(t *testing.T, pod *corev1.Pod, options corev1.PodLogOptions) (string, error) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &options).DoRaw(t.Context())
	return string(data), err
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}
