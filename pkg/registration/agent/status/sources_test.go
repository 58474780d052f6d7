package status_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/agent/status"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		answers map[string]int
		code    int
		healthy bool
	}{
		{name: "alive", answers: map[string]int{"/livez": 200, "/healthz": 500}, code: 200, healthy: true},
		{name: "before livez was there", answers: map[string]int{"/livez": 404, "/healthz": 200}, code: 200, healthy: true},
		{name: "where livez is forbidden", answers: map[string]int{"/livez": 403, "/healthz": 200}, code: 200, healthy: true},
		{name: "not alive", answers: map[string]int{"/livez": 500, "/healthz": 200}, code: 500},
		{name: "neither", answers: map[string]int{"/livez": 404, "/healthz": 404}, code: 404},
		{name: "gone", code: 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tc.answers[r.URL.Path])
			}))
			t.Cleanup(server.Close)
			if tc.answers == nil {
				server.Close()
			}
			api, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}})
			if err != nil {
				t.Fatal(err)
			}
			got := (&status.ManagedCluster{REST: api}).Health(t.Context())
			if got.Code != tc.code || (got.Err == nil) != tc.healthy {
				t.Errorf("got %d, %v", got.Code, got.Err)
			}
		})
	}
}
