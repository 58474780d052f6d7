package agent_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent"
)

// wire is a network between an agent and a hub that can be cut.
type wire struct {
	listener net.Listener
	target   string
	// down makes it close every new connection at once.
	down atomic.Bool

	mu   sync.Mutex
	dead chan struct{}
}

func newWire(t *testing.T, url string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: strings.TrimPrefix(url, "https://"), dead: make(chan struct{})}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // Ends with the listener.
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if w.down.Load() {
				_ = in.Close()
				continue
			}
			out, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.target)
			if err != nil {
				_ = in.Close()
				continue
			}
			w.mu.Lock()
			dead := w.dead
			w.mu.Unlock()
			go carry(in, out, dead)
			go carry(out, in, dead)
		}
	}()
	return w
}

// carry carries bytes until the wire is cut; then it swallows them, as a
// network does that forgot a connection.
func carry(from, to net.Conn, dead <-chan struct{}) {
	defer func() { _ = from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-dead:
			if err != nil {
				_ = to.Close()
				return
			}
			continue
		default:
		}
		if _, werr := io.Copy(to, bytes.NewReader(buffer[:n])); err != nil || werr != nil {
			_ = to.Close()
			return
		}
	}
}

// cut makes every connection that there is silent for ever.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.dead)
	w.dead = make(chan struct{})
}

// testSilentNetwork cuts the network so that nobody is told: the agent must
// find out by itself, long before the hub gives the cluster up.
func testSilentNetwork(t *testing.T, h *hub) {
	t.Helper()
	w := newWire(t, h.URL)
	s := newSpoke(t, nil, "silent")
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte("https://"+w.listener.Addr().String())))
	p := s.start(t)
	h.join(t, p, "silent")
	h.quickLease(t, "silent")
	first := h.lease(t, "silent")
	eventually(t, "the heartbeat", func() (bool, error) { return h.lease(t, "silent").After(first), nil })
	w.cut()
	before := h.lease(t, "silent")
	eventually(t, "the heartbeat to go on", func() (bool, error) { return h.lease(t, "silent").After(before.Add(3 * time.Second)), nil })
	p.reaches(t, agent.Running)
	h.deny(t, "silent") // The watch is alive as well.
	p.reaches(t, agent.Rejected)
}

// testUnreachableHub joins a hub that is not there.
func testUnreachableHub(t *testing.T, h *hub) {
	t.Helper()
	w := newWire(t, h.URL)
	_ = w.listener.Close()
	s := newSpoke(t, nil, "unreachable")
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte("https://"+w.listener.Addr().String())))
	p := s.start(t)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretError,HubKubeConfigSecretMissing", w.listener.Addr().String())
	s.setBootstrap(t, h.bootstrapKubeconfig(t))
	p.reaches(t, agent.Requested)
}

// front is a second API server of a hub: it authenticates by certificates, and
// can refuse those of agents.
type front struct {
	url     string
	refuses atomic.Bool
	// away answers nothing; then so many reads of a ManagedCluster are forbidden.
	away    atomic.Bool
	forbids atomic.Int32
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// testForbiddenAtFirst has the hub come back from an outage as an API server
// does that has not read its RBAC yet.
func testForbiddenAtFirst(t *testing.T, h *hub) {
	t.Helper()
	front := newFront(t, h)
	s := newSpoke(t, nil, "barred")
	s.setBootstrap(t, bytes.ReplaceAll(h.bootstrapKubeconfig(t), []byte(h.URL), []byte(front.url)))
	p := s.start(t)
	h.join(t, p, "barred")
	h.quickLease(t, "barred") // A watch that is open goes on through the front.
	p.reaches(t, agent.Running)
	front.away.Store(true)
	s.klusterletSays(t, metav1.ConditionTrue, "BootstrapSecretFunctional,HubKubeConfigError", "has been unreachable since")
	front.forbids.Store(1)
	front.away.Store(false)
	s.klusterletSays(t, metav1.ConditionFalse, names.ReasonHubConnectionFunctional, "")
	if front.forbids.Load() == 1 {
		t.Error("nothing was forbidden")
	}
	p.reaches(t, agent.Running)
}

func newFront(t *testing.T, h *hub) *front {
	t.Helper()
	transport, err := rest.TransportFor(h.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(h.CAData)
	certificate, err := tls.X509KeyPair(h.ServingCert(t, "front", net.IPv4(127, 0, 0, 1)))
	if err != nil {
		t.Fatal(err)
	}
	f := &front{}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		subject := r.In.TLS.PeerCertificates[0].Subject
		r.Out.Header.Set("Impersonate-User", subject.CommonName)
		for _, group := range append(subject.Organization, "system:authenticated") {
			r.Out.Header.Add("Impersonate-Group", group)
		}
	}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.away.Load() {
			panic(http.ErrAbortHandler)
		}
		agents := strings.HasPrefix(r.TLS.PeerCertificates[0].Subject.CommonName, names.ClusterGroup(""))
		switch {
		case agents && f.refuses.Load():
			fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		case agents && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/managedclusters/") && f.forbids.Add(-1) >= 0:
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}
