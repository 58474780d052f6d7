package server_test

import (
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/server"
)

// TestRequestFields reads what Envoy sends, written by Envoy's own definition,
// in both forms of headers.
func TestRequestFields(t *testing.T) {
	t.Parallel()
	plain := checkRequest(map[string]string{
		":authority": "hub", ":path": "/api/v1/pods?token=secret", "authorization": "Bearer a.b.c",
		"x-request-id": "f00-1", "accept": "application/json", "user-agent": "kubectl",
		"impersonate-user": "admin", "x-ocm-cluster": "other",
	})
	plain.Attributes.Destination = &authv3.AttributeContext_Peer{Principal: "spiffe://mesh/gateway"}
	plain.Attributes.ContextExtensions = map[string]string{"authorization": "Bearer x"}
	raw := checkRequest(nil)
	raw.Attributes.Request.Http.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: "authorization", RawValue: []byte("Bearer a.b.c")},
		{Key: "x-request-id", RawValue: []byte("f00-1")},
		{Key: "accept", RawValue: []byte("application/json")},
		{Key: "impersonate-user", RawValue: []byte("admin")},
		{Key: "x-ocm-cluster", RawValue: []byte("other")},
	}}
	want := server.Read{
		ID: "1234", Method: "GET", Path: "/api/v1/pods?token=secret", Principal: "spiffe://mesh/ns/app/sa/reader",
		RequestID: "f00-1", Accept: "application/json", Token: "a.b.c", Authorization: "Bearer a.b.c",
	}
	for name, request := range map[string]*authv3.CheckRequest{"headers": plain, "header_map": raw} {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := server.ReadCheckRequest(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{"impersonate-user", "x-ocm-cluster"}, got.Forbidden); diff != "" {
			t.Errorf("%s: headers to remove (-want +got):\n%s", name, diff)
		}
		got.Forbidden = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestToken reads the scheme as RFC 9110 §11.1 does, in any case, and refuses
// what is more than one credential.
func TestToken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Basic YTpi"}, ""},
		{[]string{"Bearerx a.b.c"}, ""},
		{[]string{"Bearer a.b.c"}, "a.b.c"},
		{[]string{"bearer a.b.c"}, "a.b.c"},
		{[]string{"BEARER   a.b.c "}, "a.b.c"},
		{[]string{"Bearer a.b.c,Bearer d.e.f"}, server.Unusable},
		{[]string{"Bearer a.b.c, Basic YTpi"}, server.Unusable},
		{[]string{"Bearer a.b.c", "Bearer d.e.f"}, server.Unusable},
		{[]string{"Bearer a.b.c", "Bearer a.b.c"}, server.Unusable},
		{[]string{"Bearer a.b.c", ""}, server.Unusable},
		{[]string{"Basic YTpi", "Bearer a.b.c"}, ""}, // Another scheme comes first.
	} {
		if got := server.TokenOf(tc.values...); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.values, got, tc.want)
		}
	}
}

// TestForbiddenHeaders: no length keeps one from being removed, and what is no
// name of a header is not repeated.
func TestForbiddenHeaders(t *testing.T) {
	t.Parallel()
	long := "impersonate-extra-" + strings.Repeat("x", 4096)
	data, err := proto.Marshal(checkRequest(map[string]string{long: "1", "x-ocm-a,b": "2", "x-ocm-a\nb": "3", "X-OCM-Role": "4", "impersonatexuser": "5"}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.ReadCheckRequest(data)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got.Forbidden)
	if diff := cmp.Diff([]string{long, "x-ocm-role"}, got.Forbidden); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzCheckRequest holds our reading against that of Envoy's own definition:
// what that reads, we read alike.
func FuzzCheckRequest(f *testing.F) {
	for _, headers := range []map[string]string{
		nil, {"authorization": "Bearer a.b.c"}, {"authorization": "Bearer a,b", "impersonate-user": "x", "x-ocm-a": "b"},
	} {
		data, err := proto.Marshal(checkRequest(headers))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := server.ReadCheckRequest(data)
		var want authv3.CheckRequest
		if proto.Unmarshal(data, &want) != nil {
			return // That we read more than Envoy can send does no harm.
		}
		if err != nil {
			t.Fatalf("refused what is well-formed: %v", err)
		}
		http := want.GetAttributes().GetRequest().GetHttp()
		if got.Path != http.GetPath() || got.Method != http.GetMethod() || got.Principal != want.GetAttributes().GetSource().GetPrincipal() {
			t.Errorf("got %+v, want %v", got, &want)
		}
		if got.Token == "" || got.Token == server.Unusable {
			return
		}
		// One token only, and it is in the one header there is.
		value, found := http.GetHeaders()["authorization"]
		for _, h := range http.GetHeaderMap().GetHeaders() {
			if h.GetKey() == "authorization" {
				value, found = string(h.GetRawValue())+h.GetValue(), true
			}
		}
		if found && got.Authorization != value {
			t.Errorf("got authorization %q, want %q", got.Authorization, value)
		}
	})
}
