package server_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

// TestRequestFields reads what Envoy sends, in both forms of headers.
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
		Request: authorizer.Request{Token: "a.b.c", Origin: authorizer.Origin{
			RequestID: "f00-1", Method: "GET", Path: "/api/v1/pods", Principal: "spiffe://mesh/ns/app/sa/reader",
		}},
		Accept: "application/json", Authorization: "Bearer a.b.c",
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
		slices.Sort(got.Forbidden)
		if diff := gocmp.Diff([]string{"impersonate-user", "x-ocm-cluster"}, got.Forbidden); diff != "" {
			t.Errorf("%s: headers to remove (-want +got):\n%s", name, diff)
		}
		got.Forbidden = nil
		if diff := gocmp.Diff(want, got); diff != "" {
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
	if diff := gocmp.Diff([]string{long, "x-ocm-role"}, got.Forbidden); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzCheckRequest: whatever bytes come, a token is taken only from the one
// Authorization header that there is.
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
		if err != nil || got.Request.Token == "" || got.Request.Token == server.Unusable {
			return
		}
		var want authv3.CheckRequest
		if err := proto.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		http := want.GetAttributes().GetRequest().GetHttp()
		var values []string
		for name, value := range http.GetHeaders() {
			if strings.EqualFold(name, "authorization") {
				values = append(values, value)
			}
		}
		for _, h := range http.GetHeaderMap().GetHeaders() {
			if strings.EqualFold(h.GetKey(), "authorization") {
				values = append(values, cmp.Or(string(h.GetRawValue()), h.GetValue()))
			}
		}
		if len(values) != 1 || values[0] != got.Authorization || !strings.HasSuffix(strings.Trim(values[0], " \t"), got.Request.Token) {
			t.Errorf("got the token %q of %q", got.Request.Token, values)
		}
	})
}

// TestHostileMessages: what is no CheckRequest is answered with an error, and the
// authorizer is not asked.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	valid, err := proto.Marshal(checkRequest(map[string]string{"authorization": "Bearer a.b.c"}))
	if err != nil {
		t.Fatal(err)
	}
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	const attributes, request, http, method, headers, key = 1, 4, 2, 2, 3, 1
	for name, data := range map[string][]byte{
		"cut off":                               valid[:len(valid)-1],
		"noise":                                 {0xff, 0xff, 0xff, 0xff},
		"a field without a value":               {0x0a},
		"a length beyond the end":               {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"a group that never ends":               {0x0b},
		"invalid UTF-8":                         field(attributes, field(request, field(http, field(method, []byte("G\xffT"))))),
		"invalid UTF-8 in the name of a header": field(attributes, field(request, field(http, field(headers, field(key, []byte("\xff")))))),
	} {
		ask := allowing()
		s := start(t, server.Config{Authorizer: ask})
		if answer, err := s.CheckWire(t.Context(), data); err == nil {
			t.Errorf("%s: answered %x", name, answer)
		}
		if got := ask.last(); got.Token != "" {
			t.Errorf("%s: asked %+v", name, got)
		}
	}
}
