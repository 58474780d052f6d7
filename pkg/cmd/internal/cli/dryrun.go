package cli

import (
	"fmt"
	"net/http"
	"strings"
)

// DryRun says how much of a command takes place.
type DryRun string

// The dry-run strategies, as kubectl names them.
const (
	// DryRunNone does everything.
	DryRunNone DryRun = "none"
	// DryRunClient sends nothing but reads.
	DryRunClient DryRun = "client"
	// DryRunServer lets the server check every write and keep none.
	DryRunServer DryRun = "server"
)

// WriteRefusedError says that a command tried to write during a client-side dry run.
type WriteRefusedError struct {
	Method string
	Path   string
}

// Error implements error.
func (e *WriteRefusedError) Error() string {
	return fmt.Sprintf("dry run: %s %s was not sent", e.Method, e.Path)
}

// dryRunTransport keeps writes from taking effect.
type dryRunTransport struct {
	mode DryRun
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t dryRunTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWrite(req) {
		return t.next.RoundTrip(req)
	}
	if t.mode == DryRunServer {
		req = req.Clone(req.Context())
		query := req.URL.Query()
		query.Set("dryRun", "All")
		req.URL.RawQuery = query.Encode()
		return t.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, &WriteRefusedError{Method: req.Method, Path: req.URL.Path}
}

// isWrite reports whether a request changes anything on the server or makes it
// issue a credential. Reviews are questions that are asked with POST.
func isWrite(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		return !strings.HasPrefix(req.URL.Path, "/apis/authorization.k8s.io/") &&
			!strings.HasPrefix(req.URL.Path, "/apis/authentication.k8s.io/")
	}
	return true
}
