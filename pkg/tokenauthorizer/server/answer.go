package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// Answers are a deployment's settings for answers.
type Answers struct {
	// Realm is sent in WWW-Authenticate; empty means "hub".
	Realm string
	// ErrorResponse has faults of ours reported to Envoy in its error_response,
	// with status 503 and Retry-After, instead of as a failed call. Envoys
	// before v1.37 do not know it and deny with 403.
	ErrorResponse bool
	// Reason adds the header x-ocm-reason to denials.
	Reason bool
}

// headerReason is the header of the response that names the reason of a denial.
const headerReason = "x-ocm-reason"

// defaultRetry is sent if a denial has no delay.
const defaultRetry = time.Second

// pair is a header or an entry of metadata.
type pair struct {
	name, value string
}

// answer is the answer to a caller, in any protocol.
type answer struct {
	// status is the HTTP status, and code the equivalent for gRPC.
	status int
	code   codes.Code
	// reason is empty for a request that is allowed.
	reason  denial.Reason
	headers []pair
	// remove names headers that the proxy must remove.
	remove []string
	body   string
	// metadata is for the access log of the proxy.
	metadata []pair
}

// allow is the answer to a request that continues with another token.
func allow(h *headers, decision *authorizer.Decision) *answer {
	a := &answer{status: http.StatusOK, code: codes.OK, remove: forbidden(h.forbidden)}
	a.header(headerAuthorization, "Bearer "+decision.Token.Value)
	a.describe(decision)
	return a
}

// forbidden returns the headers that the proxy removes from an allowed request:
// those that can be named in advance, since it may not show us all that the request
// has, and those that were seen.
func forbidden(seen []string) []string {
	names := []string{
		"impersonate-user", "impersonate-uid", "impersonate-group",
		headerReason, "x-ocm-cluster", "x-ocm-namespace", "x-ocm-serviceaccount",
	}
	always := names
	for _, name := range seen { // Each is there once, and always is short.
		if !slices.Contains(always, name) {
			names = append(names, name)
		}
	}
	return names
}

// deny is the answer to a request that does not continue. The caller learns
// the class of the reason; the reason itself is for the proxy's operators.
func (o Answers) deny(h *headers, id string, decision *authorizer.Decision, denied *denial.Error) *answer {
	a := &answer{reason: denied.Reason}
	challenge := ""
	switch denied.Reason.Class() {
	case denial.Unauthenticated:
		a.status, a.code, challenge = http.StatusUnauthorized, codes.Unauthenticated, `, error="invalid_token"`
		if denied.Reason == denial.MissingToken {
			challenge = "" // RFC 6750 §3.1: no error where no credential was tried.
		}
	case denial.Forbidden:
		a.status, a.code, challenge = http.StatusForbidden, codes.PermissionDenied, `, error="insufficient_scope"`
	case denial.Limited:
		a.status, a.code = http.StatusTooManyRequests, codes.ResourceExhausted
	case denial.Unavailable:
		a.status, a.code = http.StatusServiceUnavailable, codes.Unavailable
	}
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		a.header("www-authenticate", `Bearer realm="`+o.realm()+`"`+challenge)
	} else {
		a.header("retry-after", strconv.Itoa(seconds(denied.RetryAfter)))
	}
	if o.Reason {
		a.header(headerReason, string(denied.Reason))
	}
	a.say(h, id, denied)
	a.describe(decision)
	a.note("reason", string(denied.Reason))
	return a
}

func (o Answers) realm() string {
	if o.Realm == "" {
		return "hub"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, o.Realm)
}

// message is the one line that a caller reads.
func message(reason denial.Reason) string {
	switch reason {
	case denial.MissingToken:
		return "Missing or invalid Authorization header"
	case denial.KeysUnavailable, denial.ReviewUnavailable:
		return "Token validation is not possible at the moment"
	case denial.RateLimited:
		return "Too many token exchanges"
	default:
	}
	switch reason.Class() {
	case denial.Unauthenticated:
		return "Token validation failed"
	case denial.Unavailable:
		return "Token exchange is not possible at the moment"
	default:
		return "Token exchange failed"
	}
}

// say sets the body: a line, or for clients that read JSON the Status that
// clients of Kubernetes understand.
func (a *answer) say(h *headers, id string, denied *denial.Error) {
	text := message(denied.Reason)
	if id != "" {
		text += " (request id " + id + ")"
	}
	if !h.wantsJSON() {
		a.header("content-type", "text/plain; charset=utf-8")
		a.body = text + "\n"
		return
	}
	body := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: text, Code: int32(a.status), //nolint:gosec // a status has three digits
	}
	switch a.status {
	case http.StatusUnauthorized:
		body.Reason = metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		body.Reason = metav1.StatusReasonForbidden
	case http.StatusTooManyRequests:
		body.Reason = metav1.StatusReasonTooManyRequests
	default:
		body.Reason = metav1.StatusReasonServiceUnavailable
	}
	a.header("content-type", "application/json")
	data, err := json.Marshal(body)
	if err != nil { // Nothing in it can fail.
		data = []byte("{}")
	}
	a.body = string(data) + "\n"
}

// describe adds what is known about who asked to the metadata.
func (a *answer) describe(decision *authorizer.Decision) {
	identity := &decision.Identity
	a.note("cluster", identity.Cluster)
	a.note("namespace", identity.Account.Namespace)
	a.note("serviceaccount", identity.Account.Name)
	a.note("pod", identity.Bound.Pod.Name)
	a.note("rule", decision.Grant.Rule)
	a.note("jti", identity.Token.ID)
	a.note("issued_jti", decision.Token.ID)
}

func (a *answer) note(name, value string) {
	if value != "" {
		a.metadata = append(a.metadata, pair{name: name, value: word(value)})
	}
}

func (a *answer) header(name, value string) {
	a.headers = append(a.headers, pair{name: name, value: value})
}

// seconds rounds up, for Retry-After.
func seconds(wait time.Duration) int {
	if wait <= 0 {
		wait = defaultRetry
	}
	return int((wait + time.Second - 1) / time.Second)
}
