package server

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
)

// The words of RFC 8693 §2.1, §2.2 and §3.
const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

	typeJWT    = "urn:ietf:params:oauth:token-type:jwt"
	typeAccess = "urn:ietf:params:oauth:token-type:access_token"
	typeID     = "urn:ietf:params:oauth:token-type:id_token"

	invalidRequest     = "invalid_request"
	invalidTarget      = "invalid_target"
	invalidScope       = "invalid_scope" // RFC 6749 §5.2.
	unsupportedGrant   = "unsupported_grant_type"
	temporarilyUnknown = "temporarily_unavailable"
)

// maxForm bounds the body of a token request.
const maxForm = 64 << 10

// exchangeForm is a token request.
type exchangeForm struct {
	subjectToken string
	issuedType   string
	// audiences are the values of audience and resource.
	audiences []string
}

// exchangeAnswer is a successful answer (RFC 8693 §2.2.1).
type exchangeAnswer struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"`
}

// exchangeError is a denial (RFC 6749 §5.2).
type exchangeError struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

func (e *exchangeError) Error() string { return e.Code + ": " + e.Description }

// serveToken exchanges a token by RFC 8693.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeJSON(w, http.StatusMethodNotAllowed, &exchangeError{Code: invalidRequest, Description: "send a form with POST"})
		return
	}
	form, refused := readForm(w, r)
	if refused != nil {
		writeJSON(w, http.StatusBadRequest, refused)
		return
	}
	id := plain(r.Header.Get(headerRequestID))
	if id == "" {
		id = rand.Text()
	}
	decision, denied := s.decide(r.Context(), authorizer.Request{
		Token:  form.subjectToken,
		Origin: authorizer.Origin{RequestID: id, Method: r.Method, Path: TokenPath},
	})
	if denied != nil {
		s.denyExchange(w, id, denied)
		return
	}
	answer, refused := s.issue(form, &decision)
	if refused != nil {
		refused.Description += " (request id " + id + ")"
		writeJSON(w, http.StatusBadRequest, refused)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// issue checks what a decision is worth to the request.
func (s *Server) issue(form exchangeForm, decision *authorizer.Decision) (*exchangeAnswer, *exchangeError) {
	life, err := mint.ExpiresIn(decision.Token, decision.Identity, s.config.Clock.Now())
	if err != nil {
		return nil, &exchangeError{Code: invalidRequest, Description: "the subject token is about to end: get a new one first"}
	}
	given := audiencesOf(decision)
	for _, wanted := range form.audiences {
		if !slices.Contains(given, wanted) {
			return nil, &exchangeError{Code: invalidTarget, Description: "no token is issued for that audience"}
		}
	}
	return &exchangeAnswer{
		AccessToken: decision.Token.Value, IssuedTokenType: form.issuedType,
		TokenType: "Bearer", ExpiresIn: max(0, int64(life/time.Second)),
	}, nil
}

// audiencesOf returns the audiences of the issued token, by the token itself
// because a grant without any means those of the hub's API server.
func audiencesOf(decision *authorizer.Decision) []string {
	var claims struct {
		Audiences []string `json:"aud"`
	}
	if jwk.UnverifiedClaims(decision.Token.Value, &claims) != nil {
		return decision.Grant.Target.Audiences
	}
	return claims.Audiences
}

// denyExchange answers a denial in the words of RFC 8693 §2.2.2.
func (s *Server) denyExchange(w http.ResponseWriter, id string, denied *denial.Error) {
	status, code := http.StatusBadRequest, invalidRequest
	switch denied.Reason.Class() {
	case denial.Limited:
		status, code = http.StatusTooManyRequests, temporarilyUnknown
	case denial.Unavailable:
		status, code = http.StatusServiceUnavailable, temporarilyUnknown
	case denial.Forbidden:
		if denied.Reason == denial.TargetDenied || denied.Reason == denial.TargetMissing {
			code = invalidTarget
		}
	case denial.Unauthenticated:
	}
	if status != http.StatusBadRequest {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(denied.RetryAfter)))
	}
	if s.config.Answers.Reason {
		w.Header().Set(headerReason, string(denied.Reason))
	}
	text := message(denied.Reason)
	if denied.Reason == denial.MissingToken {
		text = "Token validation failed"
	}
	writeJSON(w, status, &exchangeError{Code: code, Description: text + " (request id " + id + ")"})
}

// readForm reads a token request. Parameters count in the body only: what is in
// an address ends up in logs.
func readForm(w http.ResponseWriter, r *http.Request) (exchangeForm, *exchangeError) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return exchangeForm{}, &exchangeError{Code: invalidRequest, Description: "send application/x-www-form-urlencoded"}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if errors.As(err, new(*http.MaxBytesError)) {
		return exchangeForm{}, &exchangeError{Code: invalidRequest, Description: "the form is too large"}
	} else if err != nil {
		return exchangeForm{}, &exchangeError{Code: invalidRequest, Description: "the form could not be read"}
	}
	values, err := url.ParseQuery(string(data))
	if err != nil {
		return exchangeForm{}, &exchangeError{Code: invalidRequest, Description: "the form is not well-formed"}
	}
	return parseForm(values)
}

// parseForm checks the parameters of a token request.
func parseForm(values url.Values) (exchangeForm, *exchangeError) {
	for _, rule := range [...]func(url.Values) *exchangeError{once, grantType, unsupported, subjectToken, resources} {
		if refused := rule(values); refused != nil {
			return exchangeForm{}, refused
		}
	}
	form := exchangeForm{
		subjectToken: values.Get("subject_token"),
		issuedType:   values.Get("requested_token_type"),
		audiences:    slices.Concat(values["audience"], values["resource"]),
	}
	if strings.Contains(form.subjectToken, ",") {
		form.subjectToken = unusable
	}
	switch form.issuedType {
	case "":
		form.issuedType = typeAccess
	case typeAccess, typeJWT:
	default:
		return exchangeForm{}, &exchangeError{invalidRequest, "requested_token_type must be " + typeAccess + " or " + typeJWT}
	}
	return form, nil
}

// once refuses repeated parameters (RFC 6749 §3.2), but those that RFC 8693 §2.1
// lets repeat.
func once(values url.Values) *exchangeError {
	for name, given := range values {
		if len(given) > 1 && name != "audience" && name != "resource" {
			return &exchangeError{invalidRequest, "a parameter is given more than once"}
		}
	}
	return nil
}

func grantType(values url.Values) *exchangeError {
	switch values.Get("grant_type") {
	case grantExchange:
		return nil
	case "":
		return &exchangeError{invalidRequest, "grant_type is missing"}
	default:
		return &exchangeError{unsupportedGrant, "grant_type must be " + grantExchange}
	}
}

func unsupported(values url.Values) *exchangeError {
	if values.Has("actor_token") || values.Has("actor_token_type") {
		return &exchangeError{invalidRequest, "actor tokens are not supported: an issued token cannot name an actor"}
	}
	if values.Get("scope") != "" {
		return &exchangeError{invalidScope, "scopes are not supported: the rights of an issued token are those of its ServiceAccount"}
	}
	return nil
}

func subjectToken(values url.Values) *exchangeError {
	if values.Get("subject_token") == "" {
		return &exchangeError{invalidRequest, "subject_token is missing"}
	}
	if kind := values.Get("subject_token_type"); kind != typeJWT && kind != typeID {
		return &exchangeError{invalidRequest, "subject_token_type must be " + typeJWT}
	}
	return nil
}

func resources(values url.Values) *exchangeError {
	for _, resource := range values["resource"] {
		if u, err := url.Parse(resource); err != nil || !u.IsAbs() || u.Fragment != "" {
			return &exchangeError{invalidTarget, "resource must be an absolute URI without a fragment"}
		}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // The client may be gone.
}
