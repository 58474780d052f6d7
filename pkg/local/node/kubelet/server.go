package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
)

// Port is where kubelets listen.
const Port = 10250

// ErrNotFound says that there is no such Pod, container or earlier start.
var ErrNotFound = errors.New("not found")

// Log is the log of one start of a container.
type Log struct {
	Path string
	// Ended is closed when the container has ended and all is written.
	Ended <-chan struct{}
}

// LogRef says which log is wanted: that of the latest start of a container or of
// the one before.
type LogRef struct {
	Namespace, Pod, Container string
	Previous                  bool
}

// Logs finds logs. An error that wraps ErrNotFound is returned to the client.
type Logs interface {
	ContainerLog(ref LogRef) (Log, error)
}

// Config is the configuration of Handler and TLS.
type Config struct {
	Logs  Logs
	Clock clock.WithTicker
	// Client is the common name of the API server's certificate.
	Client string
	// ClientCA signed it, as PEM.
	ClientCA []byte
	// Cert and Key are the serving certificate, as PEM.
	Cert, Key []byte
}

// TLS returns the server's TLS configuration: only clients whose certificate
// the CA has signed are spoken to.
func (c Config) TLS() (*tls.Config, error) {
	cert, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.ClientCA) {
		return nil, errors.New("no client CA")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}, nil
}

// Handler returns the server's handler.
func (c Config) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", c.logs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "local nodes can show logs only: exec, attach and port-forward are not supported; "+
			"the Pod's address is reachable from this machine", http.StatusNotImplemented)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// TLS has verified the chain; every node and user of the cluster has one.
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != c.Client {
			http.Error(w, "only the API server may ask a node", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (c Config) logs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	options, err := parse(query, c.Clock)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	log, err := c.Logs.ContainerLog(LogRef{
		Namespace: r.PathValue("namespace"), Pod: r.PathValue("pod"), Container: r.PathValue("container"),
		Previous: query.Get("previous") == "true",
	})
	if errors.Is(err, ErrNotFound) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options.Ended = log.Ended
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	controller := http.NewResponseController(w)
	flush := func() { _ = controller.Flush() }
	if err := logfile.Read(r.Context(), w, log.Path, options, flush); err != nil {
		// The answer has begun; breaking it off is all that can be done.
		panic(http.ErrAbortHandler)
	}
}

func parse(query url.Values, clk clock.WithTicker) (logfile.Options, error) {
	o := logfile.Options{
		Tail:       -1,
		Follow:     query.Get("follow") == "true",
		Timestamps: query.Get("timestamps") == "true",
		Clock:      clk,
	}
	for name, set := range map[string]func(int64){
		"tailLines":    func(n int64) { o.Tail = n },
		"limitBytes":   func(n int64) { o.Limit = n },
		"sinceSeconds": func(n int64) { o.Since = clk.Now().Add(-time.Duration(n) * time.Second) },
	} {
		value := query.Get(name)
		if value == "" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return o, fmt.Errorf("%s is no natural number: %q", name, value)
		}
		set(n)
	}
	if value := query.Get("sinceTime"); value != "" {
		since, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return o, fmt.Errorf("sinceTime is no time: %q", value)
		}
		o.Since = since
	}
	return o, nil
}
