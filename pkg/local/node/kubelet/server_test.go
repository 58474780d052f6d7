package kubelet_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/kubelet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

const apiServer = "the-api-server"

type logs struct{ path string }

func (l logs) ContainerLog(ref kubelet.LogRef) (kubelet.Log, error) {
	ended := make(chan struct{})
	close(ended)
	switch {
	case ref.Namespace != "ns" || ref.Pod != "pod":
		return kubelet.Log{}, fmt.Errorf("pod: %w", kubelet.ErrNotFound)
	case ref.Container != "c":
		return kubelet.Log{}, fmt.Errorf("container %s has not been started yet", ref.Container)
	case ref.Previous:
		return kubelet.Log{Path: l.path + "-none", Ended: ended}, nil
	}
	return kubelet.Log{Path: l.path, Ended: ended}, nil
}

// serve serves a log and returns what makes a client by a certificate's name;
// "" is a client without a certificate.
func serve(t *testing.T) (address string, client func(user string) *http.Client) {
	t.Helper()
	dir := t.TempDir()
	group := process.NewGroup()
	t.Cleanup(group.Close)
	plane, err := controlplane.New(controlplane.Config{Dir: filepath.Join(dir, "plane")}, group, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Close)
	ca, now := plane.Authority(), clock.RealClock{}.Now()
	cert, key, err := ca.Server(now, "node", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "log")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(out, "one\ntwo")
	_ = out.Close()
	if err := logfile.Copy(path, in, clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	config := kubelet.Config{
		Logs: logs{path}, Clock: clock.RealClock{}, Client: apiServer, ClientCA: ca.PEM(), Cert: cert, Key: key,
	}
	tlsConfig, err := config.TLS()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", tlsConfig)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: config.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "https://" + listener.Addr().String(), func(user string) *http.Client {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca.PEM())
		config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if user != "" {
			cert, key, err := ca.Client(now, user)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	address, client := serve(t)
	for _, test := range []struct {
		user, path string
		code       int
		body       string
	}{
		{apiServer, "/containerLogs/ns/pod/c", 200, "one\ntwo\n"},
		{apiServer, "/containerLogs/ns/pod/c?tailLines=1&follow=true", 200, "two\n"},
		{apiServer, "/containerLogs/ns/pod/c?limitBytes=2", 200, "on"},
		{apiServer, "/containerLogs/ns/pod/c?sinceSeconds=3600", 200, "one\ntwo\n"},
		{apiServer, "/containerLogs/ns/pod/c?sinceTime=2999-01-01T00:00:00Z", 200, ""},
		{apiServer, "/containerLogs/ns/pod/c?previous=true", 200, ""},
		{apiServer, "/containerLogs/ns/pod/c?tailLines=-1", 400, "tailLines is no natural number: \"-1\"\n"},
		{apiServer, "/containerLogs/ns/pod/c?sinceTime=today", 400, "sinceTime is no time: \"today\"\n"},
		{apiServer, "/containerLogs/ns/pod/other", 400, "container other has not been started yet\n"},
		{apiServer, "/containerLogs/ns/none/c", 404, "pod: not found\n"},
		{apiServer, "/healthz", 200, "ok"},
		{
			apiServer, "/exec/ns/pod/c", 501,
			"local nodes can show logs only: exec, attach and port-forward are not supported; the Pod's address is reachable from this machine\n",
		},
		{"system:node:other", "/containerLogs/ns/pod/c", 403, "only the API server may ask a node\n"},
		{"", "/containerLogs/ns/pod/c", 0, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client(test.user).Do(request)
		if err != nil {
			if test.code != 0 {
				t.Errorf("%s: %v", test.path, err)
			}
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.code || string(body) != test.body {
			t.Errorf("%q asks %s: %d %q, want %d %q", test.user, test.path, response.StatusCode, body, test.code, test.body)
		}
	}
}
