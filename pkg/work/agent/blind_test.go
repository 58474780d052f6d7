package agent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// gatekeeper stands before an API server that can deny to list and watch ConfigMaps, as one
// does for a moment whose authorizer does not know the RBAC objects yet.
type gatekeeper struct {
	mu      sync.Mutex
	denies  bool
	watches []context.CancelFunc
}

func (r *gatekeeper) wrap(next http.RoundTripper) http.RoundTripper { return guarded{r, next} }

type guarded struct {
	*gatekeeper

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/api/v1/configmaps" {
		return r.next.RoundTrip(req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denies {
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusForbidden)
		_, _ = answer.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return answer.Result(), nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	r.watches = append(r.watches, cancel)
	return r.next.RoundTrip(req.WithContext(ctx))
}

// deny ends the watches and denies further ones, or permits them.
func (r *gatekeeper) deny(deny bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denies = deny
	for _, cancel := range r.watches {
		cancel()
	}
	r.watches = nil
}

// testDeniedWatch has the API server deny watches for a while. The agent reads
// meanwhile, and watches again without a restart: it would read every four minutes.
func testDeniedWatch(t *testing.T, p *place) {
	t.Helper()
	gate, requests := &gatekeeper{}, &counter{}
	p.connection.Wrap(gate.wrap)
	p.connection.Wrap(requests.wrap)
	p.start(t)
	work := p.create(t, "app", twoMaps)
	p.reaches(t, work, "Applied=True", "Available=True")
	reads := func() int {
		n := 0
		for _, request := range requests.about("/configmaps/one") {
			if strings.HasPrefix(request, http.MethodGet) {
				n++
			}
		}
		return n
	}
	before := reads()
	gate.deny(true)
	await.Condition(t, patience, "the agent reads", func(context.Context) (bool, error) { return reads() > before, nil })
	gate.deny(false)
	for range 2 {
		p.edit(t, "one", `{"data":{"key":"other"}}`)
		p.finds(t, "one", func(c *corev1.ConfigMap) bool { return c != nil && c.Data["key"] == "value" })
	}
	p.reaches(t, work, "Applied=True", "Available=True")
}
