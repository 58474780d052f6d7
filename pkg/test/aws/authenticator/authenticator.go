package authenticator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/aws"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

const (
	// patience is far above the usual second: the machine may be busy.
	patience = 2 * time.Minute
	// cacheTTL is how long the API server caches a denial, so that a test that
	// tries again soon sees what has changed.
	cacheTTL = 100 * time.Millisecond
	program  = "aws-iam-authenticator"
)

// Authenticator is the webhook of one cluster.
type Authenticator struct {
	// WebhookFile is the kubeconfig that an API server uses to reach it.
	WebhookFile string

	cloud   *aws.Cloud
	cluster aws.Cluster
	binary  string
	dir     string
	group   *process.Group
	running *process.Process
	// listens is where the program listens.
	listens atomic.Pointer[string]
}

// Hub is a control plane whose API server asks an authenticator about tokens, as
// that of an EKS cluster does.
type Hub struct {
	*controlplane.Own

	// Authenticator is the authenticator that it uses.
	Authenticator *Authenticator
}

// StartHub starts a control plane and the authenticator that it asks, and adds
// the cluster to the emulator with the address and the CA of the control plane.
func StartHub(tb testing.TB, cloud *aws.Cloud, cluster aws.Cluster, options ...controlplane.Option) *Hub {
	tb.Helper()
	a := New(tb, cloud, cluster)
	cp := controlplane.Start(tb, append(options, controlplane.WithAPIServerArgs(a.APIServerArgs()...))...)
	a.Serve(tb, cp.Kubeconfig(tb, "hub"))
	return &Hub{Own: cp, Authenticator: a}
}

// New prepares an authenticator, for an API server that is started next.
func New(tb testing.TB, cloud *aws.Cloud, cluster aws.Cluster) *Authenticator {
	tb.Helper()
	a := &Authenticator{
		cloud: cloud, cluster: cluster, binary: controlplane.Program(tb, program), dir: tb.TempDir(), group: process.NewGroup(),
	}
	a.WebhookFile = a.file(webhookFile)
	tb.Cleanup(func() {
		a.group.Close()
		if tb.Failed() {
			tb.Logf("%s of %s:\n%s", program, cluster.ARN, a.lastWords())
		}
	})
	trusted, err := a.writeCertificate()
	if err != nil {
		tb.Fatal(err)
	}
	front := a.front(trusted)
	tb.Cleanup(front.Close)
	if err := a.writeWebhook(front); err != nil {
		tb.Fatal(err)
	}
	return a
}

// front is where the API server finds the webhook: an address that stays, and that
// passes requests on to wherever the program listens, if it does.
func (a *Authenticator) front(trusted *x509.CertPool) *httptest.Server {
	return httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: a.address()})
		},
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
}

// address is where the program listens, empty if it does not.
func (a *Authenticator) address() string { return ptr.Deref(a.listens.Load(), "") }

// APIServerArgs returns the arguments that make an API server ask the authenticator
// about tokens that it does not know itself. The API server caches accepted tokens for
// at least ten seconds, which is fixed.
func (a *Authenticator) APIServerArgs() []string {
	return []string{
		"--authentication-token-webhook-config-file=" + a.WebhookFile,
		"--authentication-token-webhook-cache-ttl=" + cacheTTL.String(),
	}
}

// Serve adds the cluster to the emulator, with the address and the CA of its API
// server, and starts the program for it. The kubeconfig is an administrator's.
func (a *Authenticator) Serve(tb testing.TB, admin []byte) {
	tb.Helper()
	server, err := clientcmd.RESTConfigFromKubeConfig(admin)
	if err == nil {
		err = os.WriteFile(a.file(hubFile), admin, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	a.cluster.Endpoint, a.cluster.CA, a.cluster.EntriesFile = server.Host, server.CAData, a.file(entriesFile)
	a.cloud.AddCluster(tb, a.cluster)
	a.Start(tb)
}

// Start starts the program and returns when it serves and follows changes of
// access entries.
func (a *Authenticator) Start(tb testing.TB) {
	tb.Helper()
	await.Condition(tb, patience, program+" serves", func(ctx context.Context) (bool, error) {
		if a.running == nil {
			return false, a.run(ctx)
		}
		if _, over := a.running.Status(); over {
			a.running = nil
			if !strings.Contains(a.lastWords(), "address already in use") {
				return false, fmt.Errorf("%s ended: %s", program, a.lastWords())
			}
			return false, nil // another port, then
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.address())
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, conn.Close()
	}, func() any { return a.lastWords() })
	// The program reads the file first and watches it a moment later: a change in
	// between would be lost.
	seen := a.changesSeen()
	await.Condition(tb, patience, program+" follows access entries", func(context.Context) (bool, error) {
		a.cloud.Republish(tb, a.cluster.ARN)
		return a.changesSeen() > seen, nil
	}, func() any { return a.lastWords() })
}

// Stop ends the program, so that the API server cannot authenticate tokens. The program does
// not end by a polite request.
func (a *Authenticator) Stop() {
	a.listens.Store(nil)
	if a.running != nil {
		a.running.Kill()
		a.running = nil
	}
}

// run starts the program on a port that was free a moment ago.
func (a *Authenticator) run(ctx context.Context) error {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	_ = free.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err == nil {
		err = a.writeConfig(number)
	}
	if err != nil {
		return err
	}
	log, err := os.OpenFile(a.file(logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	a.running, err = a.group.Start(&exec.Cmd{
		Path: a.binary, Args: []string{program, "server", "--config=" + a.file(configFile)},
		Env: append(a.cloud.Environment(), "HOME="+a.dir), Dir: a.dir, Stdout: log, Stderr: log,
	})
	a.listens.Store(&address)
	return err
}

// Log returns the program's log so far.
func (a *Authenticator) Log() string {
	log, err := os.ReadFile(a.file(logFile))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// lastWords is the end of the log.
func (a *Authenticator) lastWords() string {
	log := a.Log()
	return log[max(0, len(log)-4000):]
}

// changesSeen is how often the program said that access entries have changed.
func (a *Authenticator) changesSeen() int { return strings.Count(a.Log(), "got WRITE/CREATE event") }

// clusterName returns the name that tokens must be bound to: the name, not the ARN, of
// the cluster.
func (a *Authenticator) clusterName() string {
	return a.cluster.ARN[strings.LastIndex(a.cluster.ARN, "/")+1:]
}

func (a *Authenticator) partition() string { return strings.Split(a.cluster.ARN, ":")[1] }
