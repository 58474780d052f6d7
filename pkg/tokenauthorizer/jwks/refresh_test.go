package jwks_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
)

// TestProviderDownAtStart: keys that were never loaded are our problem, not the
// caller's.
func TestProviderDownAtStart(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	up := p.Down()
	e := start(t, remote("c1", sharedIssuer, p))
	e.refuses(t, sharedIssuer, key.ID, denial.KeysUnavailable)
	if status := e.status(t, "c1"); status.Err == nil || !status.Tried || !status.LastSuccess.IsZero() {
		t.Errorf("status %+v", status)
	}
	up()
	e.pass(t, time.Minute, 20*time.Second)
	e.verifies(t, sharedIssuer, key, "c1")
	if status := e.status(t, "c1"); status.Err != nil || status.LastSuccess.IsZero() {
		t.Errorf("status %+v", status)
	}
}

// TestProviderDownLater: a provider may be down for a day, and not for longer.
func TestProviderDownLater(t *testing.T) {
	t.Parallel()
	key, next := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	e := start(t, remote("c1", sharedIssuer, p))
	up := p.Down()
	moved := e.moved("c1")
	e.pass(t, 70*time.Minute, 10*time.Minute)
	e.verifies(t, sharedIssuer, key, "c1")
	e.refuses(t, sharedIssuer, next.ID, denial.KeysUnavailable) // It may be new.
	if status := e.status(t, "c1"); status.Err == nil || status.Age(e.clock.Now()) != 70*time.Minute {
		t.Errorf("after 70 minutes: %+v", status)
	}
	e.pass(t, 22*time.Hour+45*time.Minute, 20*time.Minute)
	e.verifies(t, sharedIssuer, key, "c1") // For 23 h 55 min now.
	if moved() {
		t.Error("the generation moved without a key going")
	}
	e.pass(t, 65*time.Minute, 5*time.Minute)
	e.refuses(t, sharedIssuer, key.ID, denial.KeysUnavailable)
	if !moved() {
		t.Error("keys that are too old leave the generation")
	}
	up()
	e.pass(t, 10*time.Minute, 5*time.Minute)
	e.verifies(t, sharedIssuer, key, "c1")
}

func TestStaleForIsAChoice(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	cluster := remote("c1", sharedIssuer, p)
	cluster.StaleFor = 2 * time.Hour
	e := start(t, cluster)
	p.Down()
	e.pass(t, 115*time.Minute, 5*time.Minute)
	e.verifies(t, sharedIssuer, key, "c1")
	e.pass(t, 10*time.Minute, 5*time.Minute)
	e.refuses(t, sharedIssuer, key.ID, denial.KeysUnavailable)
}

// TestBadSetReplacesNothing: only a good set replaces a good set.
func TestBadSetReplacesNothing(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	e := start(t, remote("c1", sharedIssuer, p))
	for _, data := range []string{`{"keys":[]}`, `{}`, ``, `<html>`, `{"keys":[{"kty":"oct","k":"AA","kid":"a"}]}`} {
		p.ServeData([]byte(data))
		e.pass(t, 70*time.Minute, 70*time.Minute)
		if e.status(t, "c1").Err == nil {
			t.Errorf("%q: no error is shown", data)
		}
		e.verifies(t, sharedIssuer, key, "c1")
		p.Serve(t, key)
		e.pass(t, 10*time.Minute, 10*time.Minute)
		if err := e.status(t, "c1").Err; err != nil {
			t.Errorf("after %q: %v", data, err)
		}
	}
}

// TestRotation is a rotation in five steps, with a request in each that must
// not fail.
func TestRotation(t *testing.T) {
	t.Parallel()
	old, fresh := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, old)
	e := start(t, remote("c1", sharedIssuer, p))

	e.verifies(t, sharedIssuer, old, "c1") // 1: only the old key.
	p.Serve(t, old, fresh)                 // 2: the new one is published, and not yet used.
	e.verifies(t, sharedIssuer, old, "c1")
	e.verifies(t, sharedIssuer, fresh, "c1") // 3: it signs, and no refresh was due.
	e.verifies(t, sharedIssuer, old, "c1")   // 4: tokens of both are around.
	moved := e.moved("c1")
	p.Serve(t, fresh) // 5: the old one goes.
	e.pass(t, 70*time.Minute, 70*time.Minute)
	e.verifies(t, sharedIssuer, fresh, "c1")
	e.refuses(t, sharedIssuer, old.ID, denial.UnknownKey)
	if !moved() {
		t.Error("a removed key leaves the generation: tokens that it verified stay good")
	}
}

// TestUnknownKeysAreReadOnce: 50 callers with a new key cost one read, and one
// who gives up does not end it for the others (weakness 9 of the reference).
func TestUnknownKeysAreReadOnce(t *testing.T) {
	t.Parallel()
	old, fresh := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, old)
	e := start(t, remote("c1", sharedIssuer, p))
	p.Serve(t, old, fresh)
	release := p.Hold()

	hurried, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := e.Lookup(hurried, sharedIssuer, fresh.ID); reason(err) != denial.Deadline {
		t.Errorf("a call whose deadline passed: %v", err)
	}
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() { e.verifies(t, sharedIssuer, fresh, "c1") })
	}
	release()
	callers.Wait()
	if got := p.Fetches(); got != 2 {
		t.Errorf("%d reads of the key set, want the first one and one for all callers", got)
	}
}

// TestDeadlineAtStart: a call with a deadline shorter than the provider's answer
// fails, and the keys are there for the next one.
func TestDeadlineAtStart(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	release := p.Hold()
	e := newEnv(t, remote("c1", sharedIssuer, p))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := e.Lookup(ctx, sharedIssuer, key.ID); reason(err) != denial.Deadline {
			t.Errorf("a call whose deadline passed: %v", err)
		}
		cancel()
	}
	release()
	e.verifies(t, sharedIssuer, key, "c1")
	if got := p.Fetches(); got != 1 {
		t.Errorf("%d reads, want one", got)
	}
}

// TestJunk: key ids that nobody has cost nothing but a look into a map.
func TestJunk(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	e := start(t, remote("c1", sharedIssuer, p))
	for range 100 {
		e.refuses(t, sharedIssuer, "junk", denial.UnknownKey)
	}
	if got := p.Fetches(); got != 2 {
		t.Errorf("one junk id: %d reads, want one more than at the start", got)
	}
	for i := range 3000 { // More than is remembered.
		e.refuses(t, sharedIssuer, fmt.Sprintf("junk-%d", i), denial.UnknownKey)
	}
	if got := p.Fetches(); got != 3 {
		t.Errorf("many junk ids: %d reads, want the burst of two more than at the start", got)
	}
	e.clock.Step(31 * time.Second)
	e.refuses(t, sharedIssuer, "junk-0", denial.UnknownKey)
	e.refuses(t, sharedIssuer, "junk-1", denial.UnknownKey)
	if got := p.Fetches(); got != 4 {
		t.Errorf("half a minute later: %d reads, want one more", got)
	}
	e.verifies(t, sharedIssuer, key, "c1")
}

// TestOneBadSource: what is wrong with one source does not concern the others.
func TestOneBadSource(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	good, hanging := issuer.NewProvider(t, key), issuer.NewProvider(t, key)
	release := hanging.Hold()
	closed := remote("closed", "https://closed.example.com", good)
	closed.Source.URI = "https://127.0.0.1:1/jwks"
	stranger := remote("stranger", "https://stranger.example.com", good)
	stranger.Source.CA = nil
	e := newEnv(t, remote("a-hanging", "https://hanging.example.com", hanging), closed, remote("good", sharedIssuer, good), stranger)
	e.run(t)
	await.Completion(t, patience, func(context.Context) string {
		if len(e.status(t, "good").KeyIDs) == 0 || e.status(t, "closed").Err == nil || e.status(t, "stranger").Err == nil {
			return fmt.Sprintf("keys of one and errors of two in %+v", e.Status())
		}
		return ""
	})
	e.verifies(t, sharedIssuer, key, "good")
	e.refuses(t, "https://closed.example.com", key.ID, denial.KeysUnavailable)
	e.refuses(t, "https://stranger.example.com", key.ID, denial.KeysUnavailable)
	// A slow machine may have given up the hanging one, which counts as tried.
	if ready := e.Ready(); ready == nil && !e.status(t, "a-hanging").Tried {
		t.Error("ready while a source was not tried")
	}
	release()
	await.Success(t, patience, "every source was tried", func(context.Context) error { return e.Ready() })
}

func TestRefreshFollowsCacheControl(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"":                             time.Hour,
		"public, max-age=3600":         time.Hour,
		"public, max-age=300":          5 * time.Minute,
		`max-age="300"`:                5 * time.Minute,
		"Max-Age=300, must-revalidate": 5 * time.Minute,
		"max-age=86400":                time.Hour,
		"max-age=99999999999999999999": time.Hour,
		"max-age=1":                    time.Minute,
		"max-age=-5":                   time.Minute,
		"no-store":                     time.Minute,
		"no-cache, max-age=3600":       time.Minute,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			p := issuer.NewProvider(t, issuer.NewKey(t, jwk.ES256))
			p.SetHeader("Cache-Control", header)
			e := start(t, remote("c1", sharedIssuer, p))
			got := e.status(t, "c1").NextRefresh.Sub(e.clock.Now())
			if got < want-want/10 || got > want+want/10 {
				t.Errorf("next refresh in %v, want %v give or take a tenth", got, want)
			}
		})
	}
	p := issuer.NewProvider(t, issuer.NewKey(t, jwk.ES256))
	p.SetHeader("Cache-Control", "max-age=1000")
	p.SetHeader("Age", "400")
	e := start(t, remote("c1", sharedIssuer, p))
	if got := e.status(t, "c1").NextRefresh.Sub(e.clock.Now()); got < 9*time.Minute || got > 11*time.Minute {
		t.Errorf("an answer that is 400 s old: next refresh in %v, want about 10 minutes", got)
	}
}

// TestManyReadsAtOnce changes everything at the same time, for the race detector.
func TestManyReadsAtOnce(t *testing.T) {
	t.Parallel()
	a, b := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, a)
	p.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(issuer.JWKS(t, a)) })
	e := newEnv(t, remote("c1", sharedIssuer, p))
	e.run(t)
	third := candidate(t, "c3", sharedIssuer, b)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				switch i {
				case 0:
					e.clock.Step(time.Minute)
				case 1:
					e.configure(t, remote("c1", sharedIssuer, p), inline(t, "c2", sharedIssuer, b))
				case 2:
					_ = e.Observe(third)
				case 3:
					e.Forget("c3")
				case 4:
					_, _, _ = e.Status(), e.Ready(), e.Generation("cluster1")
				default:
					_, _ = e.Lookup(t.Context(), sharedIssuer, a.ID)
					_, _ = e.Lookup(t.Context(), sharedIssuer, fmt.Sprint("junk", j))
				}
			}
		})
	}
	all.Wait()
	e.configure(t, remote("c1", sharedIssuer, p))
	e.pass(t, time.Hour, 10*time.Minute)
	e.verifies(t, sharedIssuer, a, "c1")
}
