package extauthzproxy

import (
	"net/http"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// Outcome is how an authorizer's answer, or the lack of one, was taken.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "ok"
	Denied  Outcome = "denied"
	// Failed is an error: the call failed, or the answer says that it is one.
	Failed Outcome = "error"
)

// outcomeOf says what an answer is.
func outcomeOf(response *authv3.CheckResponse, err error) Outcome {
	switch {
	case err != nil:
		return Failed
	case codes.Code(response.GetStatus().GetCode()) == codes.OK: //nolint:gosec // a code is small
		return Allowed
	case response.GetErrorResponse() != nil:
		return Failed
	default:
		return Denied
	}
}

// metadata returns the filter's metadata in the namespace envoy.filters.http.ext_authz.
// The deprecated field takes precedence over the current one.
func metadata(response *authv3.CheckResponse) map[string]any {
	from := response.GetDynamicMetadata()
	if old := deprecatedMetadata(response.GetOkResponse()); old != nil {
		from = old
	}
	return from.AsMap()
}

func deprecatedMetadata(ok *authv3.OkHttpResponse) *structpb.Struct {
	return ok.GetDynamicMetadata() //nolint:staticcheck // Envoy still reads it.
}

// allow changes the request as the answer says: headers are set first and
// removed last.
func allow(ok *authv3.OkHttpResponse, request http.Header) {
	for _, option := range ok.GetHeaders() {
		mutate(request, option)
	}
	for _, key := range ok.GetHeadersToRemove() {
		if removable(key) {
			request.Del(key)
		}
	}
}

// removable reports whether Envoy removes a header: without the others, a
// request would be none.
func removable(key string) bool {
	return !strings.HasPrefix(key, ":") && !strings.EqualFold(key, "host")
}

// mutate applies one header. An action that is not set appends, which is how an
// answer that forgets it sends two credentials upstream.
func mutate(headers http.Header, option *corev3.HeaderValueOption) {
	key, value := option.GetHeader().GetKey(), option.GetHeader().GetValue()
	if strings.HasPrefix(key, ":") {
		return // Routing by an answer is not imitated.
	}
	exists := len(headers.Values(key)) > 0
	switch action(option) {
	case corev3.HeaderValueOption_ADD_IF_ABSENT:
		if !exists {
			headers.Set(key, value)
		}
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS:
		if exists {
			headers.Set(key, value)
		}
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
		headers.Set(key, value)
	default:
		headers.Add(key, value)
	}
}

// action returns the append action of an option. The deprecated boolean takes
// precedence if it is set.
func action(option *corev3.HeaderValueOption) corev3.HeaderValueOption_HeaderAppendAction {
	if old := option.GetAppend(); old != nil { //nolint:staticcheck // Envoy still reads it.
		if old.GetValue() {
			return corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		}
		return corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	}
	return option.GetAppendAction()
}

// deny is the local reply to a request that was denied.
func deny(w http.ResponseWriter, denied *authv3.DeniedHttpResponse) {
	status := int(denied.GetStatus().GetCode())
	if status == 0 {
		status = http.StatusForbidden
	}
	reply(w, status, denied.GetHeaders(), denied.GetBody())
}

// fail is the local reply to a request about which nothing was found out. An
// answer may bring its own status; else it is the configured one.
func (p *Proxy) fail(w http.ResponseWriter, response *authv3.CheckResponse) {
	failed := response.GetErrorResponse()
	status := int(failed.GetStatus().GetCode())
	if status == 0 {
		status = p.config.StatusOnError
	}
	reply(w, status, failed.GetHeaders(), failed.GetBody())
}

func reply(w http.ResponseWriter, status int, headers []*corev3.HeaderValueOption, body string) {
	w.Header().Set("Server", "envoy")
	if body != "" {
		w.Header().Set("Content-Type", "text/plain")
	}
	for _, option := range headers {
		w.Header().Del(option.GetHeader().GetKey())
	}
	for _, option := range headers {
		w.Header().Add(option.GetHeader().GetKey(), option.GetHeader().GetValue())
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) //nolint:gosec // It is plain text from the authorizer; the client may be gone.
}
