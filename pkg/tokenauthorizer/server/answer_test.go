package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/server"
)

const (
	notAuthorized = "Missing or invalid Authorization header"
	notValid      = "Token validation failed"
	notExchanged  = "Token exchange failed"
	cannotVerify  = "Token validation is not possible at the moment"
	cannotMint    = "Token exchange is not possible at the moment"

	challenge = `Bearer realm="hub"`
	invalid   = challenge + `, error="invalid_token"`
	scope     = challenge + `, error="insufficient_scope"`
)

// reasons is every reason with its answers, the table of the documentation.
func reasons() []denied {
	table := []denied{{denial.MissingToken, 401, codes.Unauthenticated, notAuthorized, challenge, 400, "invalid_request"}}
	for _, reason := range []denial.Reason{
		denial.Malformed, denial.UnknownIssuer, denial.UnknownKey, denial.AmbiguousKey, denial.BadSignature, denial.Expired,
		denial.NotYetValid, denial.TooOld, denial.WrongAudience, denial.ClaimsMismatch, denial.LegacyToken, denial.Revoked,
	} {
		table = append(table, denied{reason, 401, codes.Unauthenticated, notValid, invalid, 400, "invalid_request"})
	}
	return append(table,
		denied{denial.NotBound, 403, codes.PermissionDenied, notExchanged, scope, 400, "invalid_request"},
		denied{denial.NotAllowed, 403, codes.PermissionDenied, notExchanged, scope, 400, "invalid_request"},
		denied{denial.TargetDenied, 403, codes.PermissionDenied, notExchanged, scope, 400, "invalid_target"},
		denied{denial.TargetMissing, 403, codes.PermissionDenied, notExchanged, scope, 400, "invalid_target"},
		denied{denial.RateLimited, 429, codes.ResourceExhausted, "Too many token exchanges", "", 429, "temporarily_unavailable"},
		denied{denial.KeysUnavailable, 503, codes.Unavailable, cannotVerify, "", 503, "temporarily_unavailable"},
		denied{denial.ReviewUnavailable, 503, codes.Unavailable, cannotVerify, "", 503, "temporarily_unavailable"},
		denied{denial.HubUnavailable, 503, codes.Unavailable, cannotMint, "", 503, "temporarily_unavailable"},
		denied{denial.HubForbidden, 503, codes.Unavailable, cannotMint, "", 503, "temporarily_unavailable"},
		denied{denial.Deadline, 503, codes.Unavailable, cannotMint, "", 503, "temporarily_unavailable"},
	)
}

// denied is a reason and how it is told.
type denied struct {
	reason    denial.Reason
	http      int
	code      codes.Code
	body      string
	challenge string // Empty where Retry-After is told instead.
	sts       int
	stsError  string
}

// err is the denial as the authorizer gives it.
func (r denied) err() error {
	return &denial.Error{Reason: r.reason, Detail: "private detail", RetryAfter: 1500 * time.Millisecond}
}

func (r denied) headers() map[string]string {
	want := map[string]string{"content-type": "text/plain; charset=utf-8", "x-ocm-reason": string(r.reason)}
	if r.challenge != "" {
		want["www-authenticate"] = r.challenge
	} else {
		want["retry-after"] = "2"
	}
	return want
}

// TestReasonsOverGRPC: with error_response, every reason is an answer.
func TestReasonsOverGRPC(t *testing.T) {
	t.Parallel()
	for _, tc := range reasons() {
		t.Run(string(tc.reason), func(t *testing.T) {
			t.Parallel()
			s := start(t, server.Config{
				Authorizer: denying(tc.err()), Answers: server.Answers{ErrorResponse: true, Reason: true},
			})
			response, err := client(t, s).Check(t.Context(), checkRequest(map[string]string{"authorization": "Bearer a.b.c", "x-request-id": "r1"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := codes.Code(uint32(response.GetStatus().GetCode())); got != tc.code {
				t.Errorf("got code %v, want %v", got, tc.code)
			}
			told := response.GetDeniedResponse()
			if tc.http == http.StatusServiceUnavailable {
				told = response.GetErrorResponse()
			}
			if got := int(told.GetStatus().GetCode()); got != tc.http {
				t.Errorf("got HTTP status %d, want %d", got, tc.http)
			}
			if diff := cmp.Diff(tc.body+" (request id r1)\n", told.GetBody()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			got := map[string]string{}
			for _, h := range told.GetHeaders() {
				got[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
			}
			if diff := cmp.Diff(tc.headers(), got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]any{"reason": string(tc.reason)}, response.GetDynamicMetadata().AsMap()); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFaultsAreFailedCalls: by default a fault of ours is an error to Envoy,
// which meets it by failure_mode_allow and status_on_error, and a denial is not.
func TestFaultsAreFailedCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range reasons() {
		s := start(t, server.Config{Authorizer: denying(tc.err())})
		response, err := client(t, s).Check(t.Context(), checkRequest(nil))
		if failed := err != nil; failed != (tc.http == http.StatusServiceUnavailable) {
			t.Errorf("%s: got error %v", tc.reason, err)
		}
		if err != nil && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), string(tc.reason))) {
			t.Errorf("%s: got error %v", tc.reason, err)
		}
		for _, h := range response.GetDeniedResponse().GetHeaders() {
			if h.GetHeader().GetKey() == "x-ocm-reason" {
				t.Errorf("%s: the reason is told although nobody asked for it", tc.reason)
			}
		}
	}
}

// TestReasonsOverHTTP: every reason over HTTP, which has no dynamic metadata.
func TestReasonsOverHTTP(t *testing.T) {
	t.Parallel()
	for _, tc := range reasons() {
		s := start(t, server.Config{Authorizer: denying(tc.err()), Answers: server.Answers{Reason: true}})
		response := get(t, "http://"+s.Addresses().HTTP+"/authz/api", http.Header{"X-Request-Id": {"r1"}})
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != tc.http || string(body) != tc.body+" (request id r1)\n" {
			t.Errorf("%s: got %d %q", tc.reason, response.StatusCode, body)
		}
		for name, want := range tc.headers() {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", tc.reason, name, got, want)
			}
		}
	}
}

// TestReasonsOverSTS: every reason in the words of RFC 8693.
func TestReasonsOverSTS(t *testing.T) {
	t.Parallel()
	for _, tc := range reasons() {
		s := start(t, server.Config{Authorizer: denying(tc.err()), Exchange: true})
		response := post(t, s, form())
		var told struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		if err := json.NewDecoder(response.Body).Decode(&told); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != tc.sts || told.Error != tc.stsError {
			t.Errorf("%s: got %d %q", tc.reason, response.StatusCode, told.Error)
		}
		if strings.Contains(told.Description, "private") || told.Description == "" {
			t.Errorf("%s: got description %q", tc.reason, told.Description)
		}
		if got := response.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: got Cache-Control %q", tc.reason, got)
		}
		if retry := response.Header.Get("Retry-After"); (retry == "2") != (tc.sts != http.StatusBadRequest) {
			t.Errorf("%s: got Retry-After %q", tc.reason, retry)
		}
	}
}

// TestAllowed: the token is replaced, what could make the hub take the request
// for somebody else's is removed, and the access log learns who it was.
func TestAllowed(t *testing.T) {
	t.Parallel()
	ask := allowing()
	s := start(t, server.Config{Authorizer: ask})
	response, err := client(t, s).Check(t.Context(), checkRequest(map[string]string{
		"authorization": "bearer a.b.c", "impersonate-extra-scopes": "x", "impersonate-user": "admin", "x-ocm-role": "y", "x-request-id": "r1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := authorizer.Request{Token: "a.b.c", Origin: authorizer.Origin{
		RequestID: "r1", Method: "GET", Path: "/api/v1/pods", Principal: "spiffe://mesh/ns/app/sa/reader",
	}}
	if diff := cmp.Diff(want, ask.last()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	ok := response.GetOkResponse()
	if response.GetStatus().GetCode() != 0 || ok == nil || len(ok.GetHeaders()) != 1 {
		t.Fatalf("got %v", response)
	}
	header := ok.GetHeaders()[0]
	if header.GetHeader().GetKey() != "authorization" || header.GetHeader().GetValue() != "Bearer hub.token.value" ||
		header.GetAppendAction().String() != "OVERWRITE_IF_EXISTS_OR_ADD" {
		t.Errorf("got header %v", header)
	}
	removed := ok.GetHeadersToRemove()
	slices.Sort(removed)
	if diff := cmp.Diff([]string{
		"impersonate-extra-scopes", "impersonate-group", "impersonate-uid", "impersonate-user",
		"x-ocm-cluster", "x-ocm-namespace", "x-ocm-reason", "x-ocm-role", "x-ocm-serviceaccount",
	}, removed); diff != "" {
		t.Errorf("headers to remove (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"cluster": "cluster1", "namespace": "app", "serviceaccount": "reader", "pod": "reader-0",
		"rule": "cluster1/allow[0]", "jti": "jti-subject", "issued_jti": "jti-issued",
	}, response.GetDynamicMetadata().AsMap()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// TestStatusForClientsOfKubernetes: who accepts JSON gets what kubectl prints.
func TestStatusForClientsOfKubernetes(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{Authorizer: denying(denial.New(denial.NotAllowed, "no rule"))})
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf, application/json;q=0.9", "Application/JSON"} {
		response, err := client(t, s).Check(t.Context(), checkRequest(map[string]string{"accept": accept}))
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.Status
		if err := json.Unmarshal([]byte(response.GetDeniedResponse().GetBody()), &got); err != nil {
			t.Fatal(err)
		}
		want := metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Message: notExchanged + " (request id 1234)", Reason: metav1.StatusReasonForbidden, Code: 403,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", accept, diff)
		}
	}
}

// TestNothingButADecisionAllows: no mistake of an authorizer lets a request
// through that has no token, or several, or that gets none.
func TestNothingButADecisionAllows(t *testing.T) {
	t.Parallel()
	empty := &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { return authorizer.Decision{}, nil }}
	unknown := denying(errors.New("not foreseen"))
	panics := &authority{decide: func(authorizer.Request) (authorizer.Decision, error) { panic("a mistake") }}
	for name, tc := range map[string]struct {
		ask           *authority
		authorization string
	}{
		"no token":       {allowing(), ""},
		"two tokens":     {allowing(), "Bearer a.b.c,Bearer d.e.f"},
		"another scheme": {allowing(), "Basic YTpi"},
		"no decision":    {empty, "Bearer a.b.c"},
		"another error":  {unknown, "Bearer a.b.c"},
		"a panic":        {panics, "Bearer a.b.c"},
	} {
		s := start(t, server.Config{Authorizer: tc.ask, Exchange: true})
		response, err := client(t, s).Check(t.Context(), checkRequest(map[string]string{"authorization": tc.authorization}))
		if err == nil && response.GetStatus().GetCode() == 0 {
			t.Errorf("%s: allowed over gRPC", name)
		}
		if got := get(t, "http://"+s.Addresses().HTTP+"/authz/", http.Header{"Authorization": {tc.authorization}}).StatusCode; got == http.StatusOK {
			t.Errorf("%s: allowed over HTTP", name)
		}
		values := form()
		values.Set("subject_token", strings.TrimPrefix(tc.authorization, "Bearer "))
		if tc.authorization != "Basic YTpi" && post(t, s, values).StatusCode == http.StatusOK {
			t.Errorf("%s: exchanged", name)
		}
	}
}

func form() url.Values {
	return url.Values{
		"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":      {"a.b.c"},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
	}
}

func post(t *testing.T, s *server.Server, values url.Values) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addresses().HTTP+"/token", strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, request)
}
