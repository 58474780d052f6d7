package server

import (
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
)

// Headers that we read, in lower case as Envoy sends them.
const (
	headerAuthorization = "authorization"
	headerAccept        = "accept"
	headerRequestID     = "x-request-id"
)

// Prefixes of headers that must not reach the hub with a token of ours: the
// first make an API server act as another user if the token may impersonate,
// the second are names of ours.
const (
	prefixImpersonate = "impersonate-"
	prefixOurs        = "x-ocm-"
)

// maxWord bounds a word in logs and answers.
const maxWord = 128

// unusable stands for credentials that are not one token. No verifier can take
// it for one.
const unusable = ","

// headers are the relevant headers of a request.
type headers struct {
	// authorization is the value of the header, and repeated is set if there is
	// more than one.
	authorization        string
	authorized, repeated bool
	accept               string
	requestID            string
	// forbidden are the names of headers that the proxy must remove, each once, and seen
	// is the set of them.
	forbidden []string
	seen      map[string]struct{}
}

// add takes one header. What cannot be the name of one is ignored.
func (h *headers) add(name, value string) {
	if !headerName(name) {
		return
	}
	switch name = strings.ToLower(name); {
	case name == headerAuthorization:
		if h.authorized {
			h.repeated = true
			return
		}
		h.authorization, h.authorized = value, true
	case name == headerRequestID:
		h.requestID = plain(value)
	case name == headerAccept:
		h.accept = value
	case strings.HasPrefix(name, prefixImpersonate), strings.HasPrefix(name, prefixOurs):
		h.forbid(name)
	}
}

// forbid notes a header that the proxy must remove. A client may send thousands, so
// that they must not be compared with each other.
func (h *headers) forbid(name string) {
	if h.seen == nil {
		h.seen = make(map[string]struct{})
	}
	if _, ok := h.seen[name]; !ok {
		h.seen[name] = struct{}{}
		h.forbidden = append(h.forbidden, name)
	}
}

// token returns the bearer token (RFC 6750 §2.1), "" if there is none, and unusable if
// there is more than one: a proxy and an API server might not use the same one.
func (h *headers) token() string {
	value := strings.Trim(h.authorization, " \t")
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	if h.repeated || strings.Contains(token, ",") {
		return unusable
	}
	return strings.TrimLeft(token, " ")
}

// wantsJSON reports whether a client asks for JSON, as clients of Kubernetes do.
func (h *headers) wantsJSON() bool {
	for media := range strings.SplitSeq(h.accept, ",") {
		media, _, _ = strings.Cut(media, ";")
		if strings.EqualFold(strings.TrimSpace(media), "application/json") {
			return true
		}
	}
	return false
}

// plain returns a word that is safe to repeat anywhere, or "".
func plain(value string) string {
	if len(value) > maxWord || !safe(value) {
		return ""
	}
	return value
}

// word returns a value from a token as it may go into another program's log: as
// it is if that is safe, else bounded and quoted.
func word(value string) string {
	if len(value) <= maxWord && safe(value) {
		return value
	}
	return strconv.QuoteToASCII(excerpt.Of(value, maxWord))
}

func safe(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}

// headerName reports whether name can be one, so that a list of names stays one.
func headerName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ',' })
}

// pathOnly cuts the query, which may hold secrets, and the fragment.
func pathOnly(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		return target[:i]
	}
	return target
}
