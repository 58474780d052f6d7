//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// reaper is a proxy in front of an API server that kills a process once a given
// number of its writes has taken effect, before the process learns of the last.
type reaper struct {
	*httptest.Server

	mu      sync.Mutex
	victim  *os.Process
	left    int
	killed  string // the write that was the last
	forever chan struct{}
}

func newReaper(t *testing.T, cp *controlplane.ControlPlane) *reaper {
	t.Helper()
	upstream, err := url.Parse(cp.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cp.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := cp.ServingCert(t, "reaper", net.IPv4(127, 0, 0, 1))
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	r := &reaper{forever: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(upstream) },
		Transport:      transport,
		ModifyResponse: r.reap,
	}
	r.Server = httptest.NewUnstartedServer(proxy)
	r.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	r.StartTLS()
	t.Cleanup(func() {
		close(r.forever)
		r.Close()
	})
	return r
}

// reap sees the answers of the API server. Dry runs write nothing.
func (r *reaper) reap(resp *http.Response) error {
	req := resp.Request
	if req.Method == http.MethodGet || req.URL.Query().Has("dryRun") || strings.HasPrefix(req.URL.Path, "/apis/authorization.k8s.io/") {
		return nil
	}
	r.mu.Lock()
	r.left--
	reached := r.left == 0 && r.victim != nil
	if reached {
		r.killed = req.Method + " " + req.URL.Path
		_ = r.victim.Kill()
	}
	r.mu.Unlock()
	if reached {
		// The victim never gets this answer.
		select {
		case <-req.Context().Done():
		case <-r.forever:
		}
		return errors.New("the victim is dead")
	}
	return nil
}

// kubeconfig leads through the reaper, as the administrator.
func (r *reaper) kubeconfig(t *testing.T, ca []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: r.URL, CertificateAuthorityData: ca}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x"}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs the command and kills it after so many writes; 0 lets it live. It
// returns the last write of a killed command, and what a living one has said.
func (r *reaper) run(t *testing.T, kubeconfig string, writes int, args ...string) (killedAt, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl-ocm", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	r.mu.Lock()
	if err := cmd.Start(); err != nil {
		r.mu.Unlock()
		t.Fatal(err)
	}
	r.left, r.killed, r.victim = writes, "", cmd.Process
	r.mu.Unlock()
	err := cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.victim = nil
	if r.killed == "" && err != nil {
		t.Fatalf("%v: %v\n%s", args, err, talk.String())
	}
	return r.killed, out.String(), talk.String()
}

// killAfterEveryWrite runs a command again and again and kills it a write later
// each time, until it survives. It returns the writes it was killed at.
func (r *reaper) killAfterEveryWrite(t *testing.T, kubeconfig string, args ...string) []string {
	t.Helper()
	var deaths []string
	for writes := 1; len(deaths) < 100; {
		at, _, _ := r.run(t, kubeconfig, writes, args...)
		if at == "" {
			return deaths
		}
		deaths = append(deaths, at)
		// What was applied is not applied again, so the next run's first write
		// is the next object. Other writes are repeated by every run.
		if !strings.HasPrefix(at, http.MethodPatch) {
			writes++
		}
	}
	t.Fatalf("%v never ends: %v", args, deaths)
	return nil
}

func TestKilledAfterEveryWrite(t *testing.T) {
	t.Parallel()
	cp := controlplane.Lease(t)
	r := newReaper(t, cp)
	kubeconfig := r.kubeconfig(t, cp.CAData)

	deaths := r.killAfterEveryWrite(t, kubeconfig, "init")
	for _, want := range []string{"customresourcedefinitions/clustermanagers", "namespaces/open-cluster-management", "deployments/cluster-manager", "clustermanagers/cluster-manager", "certificatesigningrequests", "serviceaccounts/agent-registration-bootstrap/token"} {
		if !strings.Contains(fmt.Sprint(deaths), want) {
			t.Errorf("init was not killed after writing %s: %v", want, deaths)
		}
	}
	_, _, stderr := r.run(t, kubeconfig, 0, "init")
	if strings.Contains(stderr, "created") || strings.Contains(stderr, "configured") {
		t.Errorf("init has not converged:\n%s", stderr)
	}

	applyCRDs(t, cp)
	_, token, _ := r.run(t, kubeconfig, 0, "get", "token", "-o", "token")
	tokenFile := filepath.Join(t.TempDir(), "token")
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := errors.Join(os.WriteFile(tokenFile, []byte(token), 0o600), os.WriteFile(caFile, cp.CAData, 0o600)); err != nil {
		t.Fatal(err)
	}
	join := []string{"join", "--skip-check", "cluster-kind", "--cluster-name", "c1", "--hub-apiserver", cp.URL, "--hub-token-file", tokenFile, "--ca-file", caFile}
	deaths = r.killAfterEveryWrite(t, kubeconfig, join...)
	for _, want := range []string{"customresourcedefinitions/klusterlets", "secrets/bootstrap-hub-kubeconfig", "deployments/klusterlet", "klusterlets/klusterlet"} {
		if !strings.Contains(fmt.Sprint(deaths), want) {
			t.Errorf("join was not killed after writing %s: %v", want, deaths)
		}
	}
	if _, _, stderr := r.run(t, kubeconfig, 0, join...); !strings.Contains(stderr, "nothing was changed") {
		t.Errorf("join has not converged:\n%s", stderr)
	}
}

// applyCRDs does what the hub's operator would.
func applyCRDs(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	admin := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(admin, cp.Kubeconfig(t, "hub"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), controlplane.Localkube(t), "kubectl", "--kubeconfig", admin,
		"apply", "-f", "../../manifests/crds/hub/managedclusters.yaml")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
