package tokens_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestWithoutEnvoy reaches the hub in the two ways that need no gRPC: the HTTP
// protocol of ext_authz, as nginx and Traefik speak it, and the token service,
// by the credential plugin in a workload's kubeconfig.
func TestWithoutEnvoy(t *testing.T) {
	t.Parallel()
	e := &exchangeWorld{c: newCluster(t)}
	target(t, "no-envoy", "reader")
	p := &plain{token: e.c.mint(t, "app", "web", audience)}
	config := writeFile(t, "clusters.yaml", []byte(e.config(t, "no-envoy")))
	p.a = newAuthorizer(t, "--clusters-config="+config, "--http-port=9002", "--sts")
	// What it serves with is made once its address is known.
	p.a.stop(t)
	cert, key := hub.ServingCert(t, "token-authorizer", net.ParseIP(p.a.ip))
	p.a.args = append(p.a.args, "--tls-cert-file="+writeFile(t, "tls.crt", cert), "--tls-key-file="+writeFile(t, "tls.key", key))
	p.a.start(t)
	p.a.ready(t)
	t.Run("HTTP", p.http)
	t.Run("an exec credential plugin", p.plugin)
}

type plain struct {
	a     *authorizer
	token string
}

func (p *plain) address() string { return "https://" + net.JoinHostPort(p.a.ip, "9002") }

func (p *plain) http(t *testing.T) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.CAData)
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}}
	for name, test := range map[string]struct {
		authorization string
		status        int
	}{
		"allowed": {"Bearer " + p.token, http.StatusOK},
		"denied":  {"Bearer " + p.token[:len(p.token)-4], http.StatusUnauthorized},
		"nothing": {"", http.StatusUnauthorized},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.address()+"/authz/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.authorization != "" {
			req.Header.Set("Authorization", test.authorization)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		issued := resp.Header.Get("Authorization")
		if resp.StatusCode != test.status || strings.HasPrefix(issued, "Bearer ey") != (test.status == http.StatusOK) || strings.Contains(issued, p.token) {
			t.Errorf("%s: %s, authorization of %d characters", name, resp.Status, len(issued))
		}
	}
}

// plugin has kubectl reach the hub itself, with a credential that our binary
// brings it.
func (p *plain) plugin(t *testing.T) {
	command, err := filepath.Abs(binary())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "hub",
		Contexts:       map[string]*clientcmdapi.Context{"hub": {Cluster: "hub", AuthInfo: "me"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: hub.URL, CertificateAuthorityData: hub.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"me": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Command: command,
			Args: []string{
				"exchange", "credential", "--server=" + p.address(), "--ca-file=" + writeFile(t, "ca.crt", hub.CAData),
				"--token-file=" + writeFile(t, "token", []byte(p.token)),
			},
		}}},
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kubectl := filepath.Join("..", "..", "bin", "kubectl")
	out, err := exec.CommandContext(ctx, kubectl, "--kubeconfig="+kubeconfig, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").CombinedOutput()
	if want := serviceAccount("no-envoy", "reader"); err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, fmt.Sprintf("%.1000s", out), want)
	}
}
