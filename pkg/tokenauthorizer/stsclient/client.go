package stsclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

// The words of RFC 8693 §2.1 and §3.
const (
	grantType     = "urn:ietf:params:oauth:grant-type:token-exchange"
	tokenTypeJWT  = "urn:ietf:params:oauth:token-type:jwt"
	maxAnswer     = 1 << 20
	maxWait       = 5 * time.Second
	defaultWait   = time.Second
	unavailable   = "temporarily_unavailable"
	invalidServer = "the answer is not one of a token service"
)

// Client asks one token service.
type Client struct {
	// URL is where the service takes requests. It is https.
	URL string
	// HTTP verifies the service and follows no redirects; see NewHTTP.
	HTTP *http.Client
	// Clock is the time.
	Clock clock.WithTicker
}

// Token is an issued token.
type Token struct {
	Value   string
	Expires time.Time
}

// Error is an error of the service (RFC 6749 §5.2).
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code and Description are the service's words.
	Code        string `json:"error"`
	Description string `json:"error_description"`
	// RetryAfter is how long the service wants us to wait, 0 if it does not say.
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("the token service answered %s (HTTP %d): %s", e.Code, e.Status, e.Description)
}

// Temporary says whether the same request may work later.
func (e *Error) Temporary() bool {
	return e.Code == unavailable || e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// NewHTTP returns the HTTP client for a transport: it follows no redirects, so that a
// token is sent only to the named service.
func NewHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is a successful answer (RFC 8693 §2.2.1).
type answer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
}

// Exchange exchanges a subject token for one that is valid for all audiences. It
// repeats what may work a little later, until ctx ends.
func (c *Client) Exchange(ctx context.Context, subjectToken string, audiences []string) (Token, error) {
	var last error
	for {
		token, err := c.once(ctx, subjectToken, audiences)
		if _, refused := errors.AsType[*Error](err); err != nil && !refused && ctx.Err() != nil {
			return Token{}, errors.Join(last, err) // Why there was another try says more than that it ended.
		}
		wait, again := backoff(err)
		if err == nil || !again {
			return token, err
		}
		last = err
		if !pause.For(ctx, c.Clock, wait) {
			return Token{}, errors.Join(err, ctx.Err())
		}
	}
}

// backoff is how long to wait before another try, if there is a point in one.
func backoff(err error) (time.Duration, bool) {
	var refused *Error
	if !errors.As(err, &refused) || !refused.Temporary() {
		return 0, false
	}
	if refused.RetryAfter <= 0 {
		return defaultWait, true
	}
	return min(refused.RetryAfter, maxWait), true
}

func (c *Client) once(ctx context.Context, subjectToken string, audiences []string) (Token, error) {
	form := url.Values{
		"grant_type":         {grantType},
		"subject_token":      {subjectToken},
		"subject_token_type": {tokenTypeJWT},
		"audience":           audiences,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return Token{}, err
	}
	if request.URL.Scheme != "https" {
		return Token{}, fmt.Errorf("the token service at %s must be reached over https", request.URL.Redacted())
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	sent := c.Clock.Now()
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Token{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Token{}, fmt.Errorf("read the answer of the token service: %w", err)
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK {
		return Token{}, errorOf(response, media, body)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || media != "application/json" {
		return Token{}, &Error{Status: response.StatusCode, Code: "invalid_answer", Description: invalidServer}
	}
	if a.AccessToken == "" || !strings.EqualFold(a.TokenType, "Bearer") || a.ExpiresIn <= 0 {
		return Token{}, &Error{Status: response.StatusCode, Code: "invalid_answer", Description: "the answer holds no bearer token that lasts"}
	}
	return Token{Value: a.AccessToken, Expires: sent.Add(time.Duration(a.ExpiresIn) * time.Second)}, nil
}

func errorOf(response *http.Response, media string, body []byte) error {
	refused := &Error{}
	if media != "application/json" || json.Unmarshal(body, refused) != nil || refused.Code == "" {
		*refused = Error{Code: "invalid_answer", Description: invalidServer}
	}
	refused.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	}
	return refused
}
