package tokens_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

// front is the proxy before the hub's API.
type front struct {
	url    string
	client *http.Client

	mu   sync.Mutex
	last extauthzproxy.Observation
}

// newFront puts a proxy before the hub that asks authorizers. Its timeout is
// generous, as the samples', unless change says otherwise.
func newFront(t *testing.T, authorizers []*authorizer, change func(*extauthzproxy.Config)) *front {
	t.Helper()
	f := &front{client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	config := extauthzproxy.Before(t, hub.Config(t), extauthzproxy.Config{
		Timeout: time.Minute, StatusOnError: http.StatusServiceUnavailable,
		EncodeRawHeaders: true,
		Observe: func(o extauthzproxy.Observation) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.last = o
		},
	})
	for _, a := range authorizers {
		config.Endpoints = append(config.Endpoints, a.grpc)
	}
	if change != nil {
		change(&config)
	}
	f.url = extauthzproxy.Serve(t, config).URL
	return f
}

// answer is what a workload gets that asks the hub who it is.
type answer struct {
	status int
	// user is who it is to the hub.
	user authenticationv1.UserInfo
	body string
	err  error
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s %v %s", a.status, a.user.Username, a.err, strings.TrimSpace(a.body))
}

// whoAmI asks through the proxy with a token.
func (f *front) whoAmI(ctx context.Context, token string) answer {
	return f.send(ctx, http.Header{"Authorization": {"Bearer " + token}})
}

// send asks with any headers, and as every client of Kubernetes again when the
// hub itself says that too many ask at once.
func (f *front) send(ctx context.Context, headers http.Header) answer {
	for {
		got := f.sendOnce(ctx, headers)
		if got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "Too many requests, please try again later") {
			return got
		}
		if !pause.For(ctx, clock.RealClock{}, time.Second) {
			return got
		}
	}
}

func (f *front) sendOnce(ctx context.Context, headers http.Header) answer {
	const review = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(review))
	if err != nil {
		return answer{err: err}
	}
	req.Header = headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	got := answer{status: resp.StatusCode, body: string(body), err: err}
	if resp.StatusCode == http.StatusCreated {
		var self authenticationv1.SelfSubjectReview
		got.err = json.Unmarshal(body, &self)
		got.user = self.Status.UserInfo
	}
	return got
}

// reason is why the authorizer refused the last request, as Envoy's access log
// would have it.
func (f *front) reason() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.Err != nil {
		return f.last.Err.Error()
	}
	reason, _ := f.last.Metadata["reason"].(string)
	return reason
}

// expect asks once.
func (f *front) expect(t *testing.T, token, user string) {
	t.Helper()
	if got := f.whoAmI(t.Context(), token); got.user.Username != user {
		t.Errorf("got %v (reason %q), want %s", got, f.reason(), user)
	}
}

// refused asks once and expects a status and, if one is named, a reason.
func (f *front) refused(t *testing.T, token string, status int, reason string) {
	t.Helper()
	got := f.whoAmI(t.Context(), token)
	if got.status != status || reason != "" && f.reason() != reason {
		t.Errorf("got %v (reason %q), want %d %s", got, f.reason(), status, reason)
	}
}

// becomes asks until the token stands for a user.
func (f *front) becomes(t *testing.T, token, user string) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		if got := f.whoAmI(ctx, token); got.user.Username != user {
			return fmt.Sprintf("%v (reason %q)", got, f.reason())
		}
		return ""
	})
}

// ends asks until the token is refused with a status.
func (f *front) ends(t *testing.T, token string, status int) {
	t.Helper()
	await.Completion(t, patience, func(ctx context.Context) string {
		if got := f.whoAmI(ctx, token); got.status != status {
			return got.String()
		}
		return ""
	})
}

// load asks all the time, with the token that token returns, until stop is
// called, which first lets some more requests be answered. Each must be answered
// for the user.
func (f *front) load(t *testing.T, workers int, token func() string, user string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var requests, bad atomic.Int64
	for range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				got := f.whoAmI(ctx, token())
				if ctx.Err() != nil {
					return
				}
				requests.Add(1)
				if got.user.Username != user && bad.Add(1) <= 10 {
					t.Errorf("request %d: %v (reason %q)", requests.Load(), got, f.reason())
				}
			}
		})
	}
	once := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(once)
	return func() {
		t.Helper()
		const more = 50
		before := requests.Load()
		await.Completion(t, patience, func(context.Context) string {
			if n := requests.Load() - before; n < more {
				return fmt.Sprintf("%d of %d more requests are answered", n, more)
			}
			return ""
		})
		once()
	}
}
