package server_test

import (
	"fmt"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestForeignWordsAreQuoted: what a managed cluster puts into its tokens reaches
// the proxy's access log bounded, and quoted if it could break a line.
func TestForeignWordsAreQuoted(t *testing.T) {
	t.Parallel()
	decision := allowed()
	decision.Identity.Token.ID = "a\nforged line \"x\" \x1b[31m"
	decision.Identity.Bound.Pod.Name = strings.Repeat("p", 10_000)
	s := start(t, server.Config{Authorizer: &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return decision, nil }}})
	response, err := client(t, s).Check(t.Context(), checkRequest(map[string]string{"authorization": "Bearer a.b.c"}))
	if err != nil {
		t.Fatal(err)
	}
	fields := response.GetDynamicMetadata().GetFields()
	if got := fields["jti"].GetStringValue(); got != `"a\nforged line \"x\" \x1b[31m"` {
		t.Errorf("jti is %s", got)
	}
	if got := fields["pod"].GetStringValue(); len(got) > 200 || !strings.HasPrefix(got, `"ppp`) {
		t.Errorf("pod has %d bytes", len(got))
	}
}

// TestManyForbiddenHeaders: each of very many headers that must not go on is
// named once.
func TestManyForbiddenHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{Authorizer: allowing()})
	headers := map[string]string{"authorization": "Bearer a.b.c"}
	const many = 30_000
	for i := range many {
		headers[fmt.Sprint("Impersonate-Extra-", i)] = "x"
		headers[fmt.Sprint("impersonate-extra-", i)] = "x"
	}
	request, err := proto.Marshal(checkRequest(headers))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.CheckWire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var response authv3.CheckResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		t.Fatal(err)
	}
	remove := response.GetOkResponse().GetHeadersToRemove()
	seen := map[string]bool{}
	for _, name := range remove {
		if seen[name] {
			t.Fatalf("%s is named twice", name)
		}
		seen[name] = true
	}
	if !seen["impersonate-extra-0"] || !seen[fmt.Sprint("impersonate-extra-", many-1)] || !seen["impersonate-user"] {
		t.Errorf("%d headers are removed", len(remove))
	}
}
