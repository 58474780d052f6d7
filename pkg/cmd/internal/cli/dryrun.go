package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
		dry, err := serverSide(req)
		if err != nil {
			return nil, err
		}
		return t.next.RoundTrip(dry)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, &WriteRefusedError{Method: req.Method, Path: req.URL.Path}
}

// serverSide returns the request as one that the server checks and does not
// keep. The options of a deletion are in its body, and the server does not look
// at the query then. A body that we cannot read is not sent.
func serverSide(req *http.Request) (*http.Request, error) {
	dry := req.Clone(req.Context())
	query := dry.URL.Query()
	query.Set("dryRun", "All")
	dry.URL.RawQuery = query.Encode()
	if req.Method != http.MethodDelete || req.Body == nil || req.Body == http.NoBody {
		return dry, nil
	}
	data, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	options := map[string]any{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &options); err != nil {
			return nil, &WriteRefusedError{Method: req.Method, Path: req.URL.Path}
		}
	} else {
		options["kind"], options["apiVersion"] = "DeleteOptions", "v1"
		dry.Header.Set("Content-Type", "application/json")
	}
	options["dryRun"] = []string{"All"}
	if data, err = json.Marshal(options); err != nil {
		return nil, err
	}
	dry.Body = io.NopCloser(bytes.NewReader(data))
	dry.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	dry.ContentLength = int64(len(data))
	return dry, nil
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
