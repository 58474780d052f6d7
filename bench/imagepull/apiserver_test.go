package imagepull_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// object is one of Kubernetes, as JSON has it.
type object map[string]any

func (o object) metadata() map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	return meta
}

// apiServer is as much of an API server as the controllers of image pull secrets
// need, in memory, so that they can live in a bubble of testing/synctest. It
// implements http.RoundTripper, and its answers take no time.
type apiServer struct {
	tb   testing.TB
	key  *issuer.Key
	uids *rand.Rand

	mu      sync.Mutex
	version int
	// stored are the objects by resource and name; all are in one namespace.
	stored  map[string]map[string]object
	watches map[string][]chan []byte
	// calls counts what was written, and issued are the tokens in their order.
	calls  map[string]int
	issued []issuedToken
}

// issuedToken is when a token for a Secret was issued.
type issuedToken struct {
	secret string
	at     time.Time
}

func newAPIServer(tb testing.TB) *apiServer {
	tb.Helper()
	return &apiServer{
		tb: tb, key: issuer.NewKey(tb, "ES256"), uids: rand.New(rand.NewPCG(1, 2)),
		stored:  map[string]map[string]object{"namespaces": {}, "serviceaccounts": {}, "secrets": {}},
		watches: map[string][]chan []byte{}, calls: map[string]int{},
	}
}

// RoundTrip implements http.RoundTripper.
func (s *apiServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/openid/v1/jwks" {
		return answer(req, http.StatusOK, io.NopCloser(bytes.NewReader(issuer.JWKS(s.tb, s.key)))), nil
	}
	path := strings.Split(strings.TrimPrefix(req.URL.Path, "/api/v1/"), "/")
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:] // The namespace is the only one.
	}
	path = append(path, "", "")
	resource, name, subresource := path[0], path[1], path[2]
	query := req.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stored[resource] == nil:
		return s.status(req, http.StatusNotFound), nil
	case query.Get("watch") != "" && query.Get("sendInitialEvents") != "":
		return s.status(req, http.StatusUnprocessableEntity), nil // The client lists, then.
	case query.Get("watch") != "":
		return answer(req, http.StatusOK, s.watch(req, resource)), nil
	case req.Method == http.MethodGet && name == "":
		return s.json(req, s.list(resource)), nil
	}
	s.calls[req.Method+" "+strings.TrimSuffix(resource+"/"+subresource, "/")]++
	var body object
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return nil, err
	}
	if subresource == "token" {
		return s.json(req, s.token(name, body)), nil
	}
	if req.Method == http.MethodPost {
		name, _ = body.metadata()["name"].(string)
	}
	return s.json(req, s.store(resource, name, body)), nil
}

// store creates an object or merges a change into it.
func (s *apiServer) store(resource, name string, change object) object {
	s.version++
	kind := "MODIFIED"
	meta := map[string]any{"uid": s.uid(), "creationTimestamp": now.Now().UTC().Format(time.RFC3339)}
	merged := object{"metadata": meta}
	if before, ok := s.stored[resource][name]; ok {
		merged, meta = maps.Clone(before), maps.Clone(before.metadata())
	} else {
		kind = "ADDED"
	}
	maps.Copy(meta, change.metadata())
	maps.Copy(merged, change)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	merged["metadata"] = meta
	s.stored[resource][name] = merged
	event := s.marshal(map[string]any{"type": kind, "object": merged})
	for _, watch := range s.watches[resource] {
		watch <- event
	}
	return merged
}

// uid is random, and the same in every run.
func (s *apiServer) uid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", s.uids.Uint32(), s.uids.IntN(1<<16), s.uids.IntN(1<<12), s.uids.IntN(1<<12), s.uids.Int64N(1<<48))
}

func (s *apiServer) list(resource string) object {
	items := slices.Collect(maps.Values(s.stored[resource]))
	list := object{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items}
	switch resource {
	case "namespaces":
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	case "secrets":
		list["kind"] = "SecretList"
	case "serviceaccounts":
		list["kind"] = "ServiceAccountList"
	}
	return list
}

// watch streams what changes from now on until the request ends. Nothing changes
// between a list and its watch here.
func (s *apiServer) watch(req *http.Request, resource string) io.ReadCloser {
	events := make(chan []byte, 1<<17)
	s.watches[resource] = append(s.watches[resource], events)
	reader, writer := io.Pipe()
	go func() {
		for {
			select {
			case <-req.Context().Done():
				_ = writer.Close()
				return
			case event := <-events:
				_, _ = writer.Write(event)
			}
		}
	}()
	return reader
}

// token answers a TokenRequest. Its token has no signature, at which the controllers
// do not look.
func (s *apiServer) token(account string, request object) object {
	spec, _ := request["spec"].(map[string]any)
	seconds, _ := spec["expirationSeconds"].(float64)
	bound, _ := spec["boundObjectRef"].(map[string]any)
	at := now.Now()
	end := at.Add(time.Duration(seconds) * time.Second)
	claims := issuer.BoundClaims("https://kubernetes.default.svc", onlyNamespace, account, at, map[string]any{
		"aud": spec["audiences"], "exp": end.Unix(),
		"kubernetes.io": map[string]any{
			"serviceaccount": map[string]any{"uid": s.stored["serviceaccounts"][account].metadata()["uid"]},
			"secret":         map[string]any{"uid": bound["uid"]},
		},
	})
	encode := func(part any) string { return base64.RawURLEncoding.EncodeToString(s.marshal(part)) }
	jwt := encode(map[string]any{"alg": "RS256", "kid": s.key.ID}) + "." + encode(claims) + "."
	secret, _ := bound["name"].(string)
	s.issued = append(s.issued, issuedToken{secret, at})
	return object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec,
		"status": map[string]any{"token": jwt, "expirationTimestamp": end.UTC().Format(time.RFC3339)},
	}
}

func (s *apiServer) json(req *http.Request, value object) *http.Response {
	return answer(req, http.StatusOK, io.NopCloser(bytes.NewReader(s.marshal(value))))
}

// status is an answer that says only what went wrong.
func (s *apiServer) status(req *http.Request, code int) *http.Response {
	r := s.json(req, object{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": "Invalid", "message": req.URL.String()})
	r.StatusCode = code
	return r
}

func (s *apiServer) marshal(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		s.tb.Error(err)
	}
	return data
}

func answer(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: req,
	}
}
