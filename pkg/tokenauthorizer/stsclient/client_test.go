package stsclient_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/stsclient"
)

// service answers in memory, so that a test can have a clock of its own.
type service func(w http.ResponseWriter, r *http.Request)

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	s(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

func client(s service) *stsclient.Client {
	return &stsclient.Client{URL: "https://hub.example.com/token", HTTP: stsclient.NewHTTP(s), Clock: clock.RealClock{}}
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func TestExchange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got url.Values
		c := client(func(w http.ResponseWriter, r *http.Request) {
			got = r.PostForm
			if r.URL.RawQuery != "" {
				t.Error("something is in the address")
			}
			reply(w, http.StatusOK, `{"access_token":"issued","token_type":"bearer","expires_in":600}`)
		})
		token, err := c.Exchange(t.Context(), "subject", []string{"a", "b"})
		want := stsclient.Token{Value: "issued", Expires: clock.RealClock{}.Now().Add(10 * time.Minute)}
		if err != nil || token != want {
			t.Errorf("got %+v, %v", token, err)
		}
		form := url.Values{
			"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
			"subject_token":      {"subject"},
			"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
			"audience":           {"a", "b"},
		}
		if diff := cmp.Diff(form, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLater repeats what the service wants to be asked again, when it says so,
// and nothing else.
func TestLater(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		retry  string
		tries  int
		waited time.Duration
	}{
		"it is told when":       {status: 503, body: `{"error":"temporarily_unavailable"}`, retry: "2", tries: 2, waited: 2 * time.Second},
		"it is not told when":   {status: 503, body: `{"error":"temporarily_unavailable"}`, tries: 2, waited: time.Second},
		"it is told to be slow": {status: 429, body: `{"error":"temporarily_unavailable"}`, retry: "3600", tries: 2, waited: 5 * time.Second},
		"a proxy is in between": {status: 502, body: `<html>`, tries: 2, waited: time.Second},
		"it is refused":         {status: 400, body: `{"error":"invalid_request"}`, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tries atomic.Int32
				c := client(func(w http.ResponseWriter, _ *http.Request) {
					if tries.Add(1) > 1 {
						reply(w, http.StatusOK, `{"access_token":"issued","token_type":"Bearer","expires_in":600}`)
						return
					}
					w.Header().Set("Retry-After", tc.retry)
					reply(w, tc.status, tc.body)
				})
				start := clock.RealClock{}.Now()
				_, err := c.Exchange(t.Context(), "subject", nil)
				waited := clock.RealClock{}.Since(start)
				if int(tries.Load()) != tc.tries || waited != tc.waited || (err == nil) != (tc.tries == 2) {
					t.Errorf("%d tries in %v: %v", tries.Load(), waited, err)
				}
			})
		})
	}
}

// TestTheCallerEnds: what the service said last is known, whether the time ends
// between two tries or in one.
func TestTheCallerEnds(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]int32{"between tries": 100, "in a try": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tries atomic.Int32
				c := client(func(w http.ResponseWriter, r *http.Request) {
					if tries.Add(1) > answered {
						<-r.Context().Done()
					}
					reply(w, http.StatusServiceUnavailable, `{"error":"temporarily_unavailable","error_description":"soon"}`)
				})
				ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
				defer cancel()
				_, err := c.Exchange(ctx, "subject", nil)
				var refused *stsclient.Error
				if !errors.As(err, &refused) || refused.Description != "soon" || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestNeverElsewhere: a token goes to the service over TLS, and to nobody else.
func TestNeverElsewhere(t *testing.T) {
	t.Parallel()
	asked := 0
	redirecting := client(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Location", "https://evil.example.com/token")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	if _, err := redirecting.Exchange(t.Context(), "subject", nil); err == nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	plain := client(func(http.ResponseWriter, *http.Request) { t.Error("asked without TLS") })
	plain.URL = "http://hub.example.com/token"
	if _, err := plain.Exchange(t.Context(), "subject", nil); err == nil {
		t.Error("asked without TLS")
	}
}

// TestOddAnswers are no tokens, and do not end up in the error.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "{", `[]`, `{"access_token":"secret"}`, `{"access_token":"secret","token_type":"mac","expires_in":5}`,
		`{"access_token":"secret","token_type":"Bearer","expires_in":-5}`, `{"token_type":"Bearer","expires_in":5}`,
	} {
		c := client(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, body) })
		token, err := c.Exchange(t.Context(), "subject", nil)
		if err == nil || token.Value != "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", body, token, err)
		}
	}
}
