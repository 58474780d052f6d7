package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestHTTP asks as Envoy's HTTP service, nginx's auth_request and Traefik's
// ForwardAuth do: any method and path below /authz/ is a request for a decision.
func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, method, path string
		header             map[string]string
		want               authorizer.Origin
	}{
		{
			"Envoy", "DELETE", "/authz/api/v1/pods/x?token=secret", nil,
			authorizer.Origin{RequestID: "r1", Method: "DELETE", Path: "/api/v1/pods/x"},
		},
		{
			"Envoy, an untidy path", "GET", "/authz//a/../b%2Fc", nil,
			authorizer.Origin{RequestID: "r1", Method: "GET", Path: "//a/../b%2Fc"},
		},
		{"no path", "GET", "/authz", nil, authorizer.Origin{RequestID: "r1", Method: "GET", Path: ""}},
		{
			"nginx", "GET", "/authz/",
			map[string]string{"X-Original-URI": "/apis?token=secret", "X-Original-Method": "PATCH"},
			authorizer.Origin{RequestID: "r1", Method: "PATCH", Path: "/apis"},
		},
		{
			"Traefik", "GET", "/authz/",
			map[string]string{"X-Forwarded-Uri": "/apis?token=secret", "X-Forwarded-Method": "POST"},
			authorizer.Origin{RequestID: "r1", Method: "POST", Path: "/apis"},
		},
		{
			"Envoy, and a client's header", "DELETE", "/authz/api/v1/pods/x",
			map[string]string{"X-Forwarded-Uri": "/harmless", "X-Forwarded-Method": "GET"},
			authorizer.Origin{RequestID: "r1", Method: "DELETE", Path: "/api/v1/pods/x"},
		},
		{
			"nginx, and a client's headers", "GET", "/authz/",
			map[string]string{"X-Original-URI": "/apis", "X-Original-Method": "PATCH", "X-Forwarded-Uri": "/harmless", "X-Forwarded-Method": "GET"},
			authorizer.Origin{RequestID: "r1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ask := allowing()
			s := start(t, server.Config{Authorizer: ask})
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+s.Addresses().HTTP+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer a.b.c")
			request.Header.Set("X-Request-Id", "r1")
			request.Header.Set("Impersonate-Extra-Scopes", "x")
			for name, value := range tc.header {
				request.Header.Set(name, value)
			}
			response := do(t, request)
			if response.StatusCode != http.StatusOK || response.Header.Get("Authorization") != "Bearer hub.token.value" {
				t.Errorf("got %d %v", response.StatusCode, response.Header)
			}
			removed := response.Header.Get("X-Envoy-Auth-Headers-To-Remove")
			for _, name := range []string{"impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-scopes", "x-ocm-cluster"} {
				if !strings.Contains(","+removed+",", ","+name+",") {
					t.Errorf("%s is not removed: %q", name, removed)
				}
			}
			if got := response.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q", got)
			}
			if diff := cmp.Diff(authorizer.Request{Token: "a.b.c", Origin: tc.want}, ask.last()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHTTPHeaders: a second value is a second credential, and a missing or
// unprintable request id gets replaced.
func TestHTTPHeaders(t *testing.T) {
	t.Parallel()
	ask := allowing()
	s := start(t, server.Config{Authorizer: ask})
	url := "http://" + s.Addresses().HTTP
	if got := get(t, url+"/authz/", http.Header{"Authorization": {"Bearer a.b.c", "Bearer a.b.c"}}).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("two values: got %d", got)
	}
	for _, id := range []string{"", "a\tb", strings.Repeat("x", 129)} {
		get(t, url+"/authz/", http.Header{"Authorization": {"Bearer a.b.c"}, "X-Request-Id": {id}})
		if got := ask.last().Origin.RequestID; got == "" || got == id {
			t.Errorf("%q: got id %q", id, got)
		}
	}
	for _, path := range []string{"/", "/check", "/authzother", "/token"} { // The exchange is off.
		if got := get(t, url+path, nil).StatusCode; got != http.StatusNotFound {
			t.Errorf("%s: got %d", path, got)
		}
	}
}
