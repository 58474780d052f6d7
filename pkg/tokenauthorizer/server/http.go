package server

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
)

// Paths of the HTTP endpoint.
const (
	// AuthzPath is the path for decisions, with any suffix.
	AuthzPath = "/authz/"
	// TokenPath is the token endpoint of RFC 8693.
	TokenPath = "/token"
)

// headerRemove names the headers of the request that Envoy removes.
const headerRemove = "x-envoy-auth-headers-to-remove"

// maxHeader bounds the header of a request; a token may have 16 KiB.
const maxHeader = 64 << 10

func (s *Server) newHTTP() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(s.serveRequest), MaxHeaderBytes: maxHeader, Protocols: &protocols,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		// Handshakes that fail are the business of the client that began them.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.config.Log.V(1)), slog.LevelInfo),
	}
	if s.certificates != nil {
		server.TLSConfig = s.certificates.serverConfig()
	}
	return server
}

// serveRequest routes without a ServeMux, which would redirect paths that it
// finds untidy; they are the client's, and a proxy takes a redirect for a denial.
func (s *Server) serveRequest(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		// A proxy does not repeat a request that meets a connection as it is
		// closed, so each answer is the last on its connection.
		w.Header().Set("Connection", "close")
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.config.Log.Error(fmt.Errorf("panic: %v", cause), "Failing a request", "stack", string(debug.Stack()))
			http.Error(w, "The authorizer met a fault of its own", http.StatusInternalServerError)
		}
	}()
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, AuthzPath) || path+"/" == AuthzPath:
		s.serveAuthz(w, r, path)
	case path == TokenPath && s.config.Exchange:
		s.serveToken(w, r)
	default:
		http.Error(w, "Nothing is served here: ask for a decision under "+AuthzPath, http.StatusNotFound)
	}
}

// serveAuthz answers Envoy's HTTP service of ext_authz, nginx's auth_request and
// Traefik's ForwardAuth, all of which take the status for the decision.
func (s *Server) serveAuthz(w http.ResponseWriter, r *http.Request, path string) {
	if err := s.certificates.verify(r.TLS); err != nil {
		s.config.Log.Info("Refusing a client", "reason", err.Error(), "address", r.RemoteAddr)
		http.Error(w, "This client is not allowed to ask", http.StatusForbidden)
		return
	}
	var h headers
	for name, values := range r.Header {
		for _, value := range values {
			h.add(name, value)
		}
	}
	if h.requestID == "" {
		h.requestID = rand.Text()
	}
	request := authorizer.Request{Token: h.token(), Origin: origin(r, strings.TrimPrefix(path, strings.TrimSuffix(AuthzPath, "/")))}
	request.Origin.RequestID = h.requestID
	decision, denied := s.decide(r.Context(), request)
	if denied == nil {
		allow(&h, &decision).write(w)
		return
	}
	s.config.Answers.deny(&h, h.requestID, &decision, denied).write(w)
}

// origin returns the client's request to its proxy, as far as the proxy reports it.
// Envoy reports it in the method and the path of its own request, nginx and Traefik in
// different headers: behind one of them, the other's headers are the client's, who must
// not control the audit log.
func origin(r *http.Request, path string) authorizer.Origin {
	method := stated(r, "X-Forwarded-Method", "X-Original-Method")
	uri := stated(r, "X-Forwarded-Uri", "X-Original-Uri")
	if path != "" && path != "/" || method == nil && uri == nil {
		return authorizer.Origin{Method: r.Method, Path: pathOnly(path)}
	}
	return authorizer.Origin{Method: only(method), Path: pathOnly(only(uri))}
}

// stated returns the values of headers that are set.
func stated(r *http.Request, names ...string) []string {
	var all []string
	for _, name := range names {
		for _, value := range r.Header.Values(name) {
			if value != "" {
				all = append(all, value)
			}
		}
	}
	return all
}

// only returns the one value, and nothing if there are several.
func only(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return ""
}

// write answers over HTTP.
func (a *answer) write(w http.ResponseWriter) {
	for _, h := range a.headers {
		w.Header().Set(h.name, h.value)
	}
	if len(a.remove) > 0 {
		w.Header().Set(headerRemove, strings.Join(a.remove, ","))
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body) // The client may be gone.
}
