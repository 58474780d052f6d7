package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/scheme"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pod(name, ip string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 9443}},
		}}},
		Status: corev1.PodStatus{PodIP: ip, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: corev1.ServiceSpec{
			ClusterIPs: []string{"10.96.1.2"}, Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{
				{Port: 443, TargetPort: intstr.FromString("https")},
				{Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Port: 9000},
				{Port: 1, TargetPort: intstr.FromString("none")},
			},
		},
	}
	empty := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "empty"},
		Spec: corev1.ServiceSpec{
			ClusterIPs: []string{"10.96.1.3"}, Selector: map[string]string{"app": "none"}, Ports: []corev1.ServicePort{{Port: 443}},
		},
	}
	r := egress.Resolver{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		service, empty, pod("unready", "127.1.1.2", corev1.ConditionFalse), pod("ready", "127.1.1.3", corev1.ConditionTrue),
	).Build()}
	for in, want := range map[string]string{
		"127.1.1.1:10250":              "127.1.1.1:10250",
		"10.96.1.2:443":                "127.1.1.3:9443",
		"10.96.1.2:80":                 "127.1.1.3:8080",
		"web.ns.svc:9000":              "127.1.1.3:9000",
		"web.ns.svc.cluster.local:443": "127.1.1.3:9443",
		"example.com:443":              "example.com:443",
		"10.96.1.2:444":                "error: service ns/web has no port 444",
		"10.96.1.2:1":                  "error: no ready pod behind port 1 of service ns/web",
		"10.96.1.3:443":                "error: no ready pod behind port 443 of service ns/empty",
		"none.ns.svc:443":              `error: service ns/none: services "none" not found`,
	} {
		got, err := r.Resolve(t.Context(), in)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("Resolve(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	echo, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	proxy := egress.Proxy{Log: logr.Discard(), Resolve: func(_ context.Context, address string) (string, error) {
		if address == "web.ns.svc:443" {
			return echo.Addr().String(), nil
		}
		return "", fmt.Errorf("no %s", address)
	}}
	go func() { done <- proxy.Serve(ctx, listener) }()
	connect := func(address string) (int, net.Conn, *bufio.Reader) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", address)
		r := bufio.NewReader(c)
		response, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatal(err)
		}
		// A tunnel has no body, and a refusal's is not read.
		_ = response.Body.Close()
		return response.StatusCode, c, r
	}
	code, c, r := connect("web.ns.svc:443")
	if code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	fmt.Fprintln(c, "hello")
	if line, err := r.ReadString('\n'); line != "hello\n" {
		t.Errorf("echo %q, %v", line, err)
	}
	code, refused, _ := connect("other:1")
	if code != http.StatusBadGateway {
		t.Errorf("status %d, want 502", code)
	}
	_ = refused.Close()
	// The open tunnel does not keep the proxy.
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = c.Close()
}
