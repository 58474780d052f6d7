package server_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestLimits: what is too large is refused before it is read, and nobody is asked.
func TestLimits(t *testing.T) {
	t.Parallel()
	ask := allowing()
	s := start(t, server.Config{Authorizer: ask})
	large := checkRequest(map[string]string{"authorization": "Bearer a.b.c"})
	large.Attributes.Request.Http.Body = strings.Repeat("x", 1<<20)
	if _, err := client(t, s).Check(t.Context(), large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large message: got %v", err)
	}
	header := http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 128<<10)}}
	if got := get(t, "http://"+s.Addresses().HTTP+"/authz/", header).StatusCode; got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: got %d", got)
	}
	if got := ask.last(); got.Token != "" {
		t.Errorf("asked %+v", got)
	}
}
