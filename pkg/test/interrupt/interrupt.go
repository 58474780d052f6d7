package interrupt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// ErrCut is the error of every request of a client that was cut off.
var ErrCut = errors.New("cut off from the server")

// Concerns reports whether a write, given as its method and path, is about a
// subject.
type Concerns func(write, subject string) bool

// Writes are the writes of a client, events of Kubernetes included. They include
// neither writes that the server rejected, because it was busy or another writer was
// faster, nor dry runs. Its methods may be called from any goroutine.
type Writes struct {
	concerns Concerns
	subject  string
	after    int
	cut      chan struct{}
	once     sync.Once

	mu sync.Mutex
	// all has an empty entry for what was refused.
	all []string
}

// Count notes the writes of a client.
func Count(concerns Concerns) *Writes {
	return &Writes{concerns: concerns, cut: make(chan struct{})}
}

// After notes the writes of a client as well, and cuts it off after the n-th
// that is about a subject. The client never sees the answer to that one.
func After(n int, subject string, concerns Concerns) *Writes {
	w := Count(concerns)
	w.after, w.subject = n, subject
	return w
}

// Wrap puts the watch between a client and the server, for rest.Config.Wrap.
func (w *Writes) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{Writes: w, next: next}
}

// About returns the writes about a subject, in their order.
func (w *Writes) About(subject string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about(subject)
}

// AwaitCut waits for up to patience until the client is cut off. It reports
// false if done is true before: then it has made fewer writes than that.
func (w *Writes) AwaitCut(tb testing.TB, patience time.Duration, done wait.ConditionWithContextFunc) (cut bool) {
	tb.Helper()
	await.Condition(tb, patience, fmt.Sprintf("write %d about %s", w.after, w.subject), func(ctx context.Context) (bool, error) {
		select {
		case <-w.cut:
			cut = true
			return true, nil
		default:
			return done(ctx)
		}
	}, func() any { return w.About(w.subject) })
	return cut
}

func (w *Writes) about(subject string) []string {
	var found []string
	for _, write := range w.all {
		if write != "" && w.concerns(write, subject) {
			found = append(found, write)
		}
	}
	return found
}

// note notes a write and reports which one it is, and whether it is the last if the server
// does not refuse it. After one that was refused, a later one is beyond the n-th.
func (w *Writes) note(write string) (index int, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, write)
	return len(w.all) - 1, w.after > 0 && w.concerns(write, w.subject) && len(w.about(w.subject)) >= w.after
}

// refused forgets a write.
func (w *Writes) refused(index int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[index] = ""
}

type transport struct {
	*Writes

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.URL.Query().Has("dryRun") {
		return t.next.RoundTrip(req)
	}
	select {
	case <-t.cut:
		return nil, ErrCut
	default:
	}
	index, last := t.note(req.Method + " " + req.URL.Path)
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		t.refused(index)
		return resp, nil
	}
	if last {
		// Two at the same time were both the last.
		t.once.Do(func() { close(t.cut) })
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, ErrCut
	}
	return resp, err
}
