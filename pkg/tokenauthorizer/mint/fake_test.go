package mint_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(context.WithoutCancel(t.Context()))
}

func pause(d time.Duration) { clock.RealClock{}.Sleep(d) } // The bubble's time.

// TestRenewalInBackground has one request each minute for a day: the first one
// waits for the hub, no other does, and there is one TokenRequest per 70 to 80 %
// of a life.
func TestRenewalInBackground(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{10 * time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, delay: 300 * time.Millisecond}
			e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
			synctest.Wait()
			r := ask("c1")
			r.Target.Expiration = life
			var wall clock.RealClock
			for minute := range 24 * 60 {
				before := wall.Now()
				issued, cached, err := e.Mint(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if waited := wall.Since(before); minute > 0 && (waited > 0 || !cached) {
					t.Fatalf("minute %d waited %v, cached %v", minute, waited, cached)
				}
				if left := issued.Expires.Sub(wall.Now()); left < max(life/5, 2*time.Minute)-time.Second {
					t.Fatalf("minute %d got a token with %v left", minute, left)
				}
				pause(time.Minute)
			}
			most := int(24*time.Hour/(life*7/10)) + 2
			if n := hub.count(); n > most || n < int(24*time.Hour/life) {
				t.Errorf("a life of %v: %d TokenRequests in a day, want at most %d", life, n, most)
			}
		})
	}
}

// TestSkewedClocks: a token is kept for its life, also where the hub's clock
// says that it is over.
func TestSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-20 * time.Minute, 20 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, skew: skew}
			e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
			synctest.Wait()
			r := ask("c1")
			r.Target.Expiration = 10 * time.Minute
			for minute := range 60 {
				if _, cached, err := e.Mint(t.Context(), r); err != nil || cached != (minute > 0) {
					t.Errorf("skew %v, minute %d: cached %v, %v", skew, minute, cached, err)
				}
				pause(time.Minute)
			}
			if n := hub.count(); n > 10 {
				t.Errorf("skew %v: %d TokenRequests in an hour", skew, n)
			}
		})
	}
}

// TestUnusedTokenEnds: nobody asks again, so nothing is renewed.
func TestUnusedTokenEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		if _, _, err := e.Mint(t.Context(), ask("c1")); err != nil {
			t.Fatal(err)
		}
		pause(24 * time.Hour)
		if n := hub.count(); n != 1 {
			t.Errorf("%d TokenRequests", n)
		}
	})
}

// TestOutageDuringRenewal: the token serves on while the hub is away, and is
// renewed once it is back.
func TestOutageDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		synctest.Wait()
		r := ask("c1")
		for minute := range 120 {
			hub.set(func(h *fakeHub) {
				h.status = 0
				if minute%60 >= 38 && minute%60 < 46 {
					h.status = http.StatusInternalServerError
				}
			})
			if _, _, err := e.Mint(t.Context(), r); err != nil {
				t.Fatalf("minute %d: %v", minute, err)
			}
			pause(time.Minute)
		}
	})
}

// TestSlowHub: callers with 200 ms are told to come back, and their request's
// token is there when they do.
func TestSlowHub(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, delay: 400 * time.Millisecond}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, _, err := e.Mint(ctx, ask("c1"))
				refused, ok := errors.AsType[*denial.Error](err)
				if !ok || refused.Reason != denial.Deadline || refused.RetryAfter == 0 || refused.Reason.Class() != denial.Unavailable {
					t.Errorf("got %v", err)
				}
			})
		}
		callers.Wait()
		pause(300 * time.Millisecond)
		if _, cached, err := e.Mint(t.Context(), ask("c1")); err != nil || !cached {
			t.Errorf("the next request got cached %v, %v", cached, err)
		}
		if n := hub.count(); n != 1 {
			t.Errorf("%d TokenRequests", n)
		}
	})
}

// TestHubNeverAnswers: a TokenRequest has a deadline of its own.
func TestHubNeverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, delay: time.Hour}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		var wall clock.RealClock
		before := wall.Now()
		_, _, err := e.Mint(t.Context(), ask("c1"))
		if reason := denial.Of(err).Reason; reason != denial.HubUnavailable {
			t.Errorf("got %v", err)
		}
		if waited := wall.Since(before); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestErrors maps what the hub answers to what the caller hears.
func TestErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]denial.Reason{
		http.StatusNotFound:            denial.TargetMissing,
		http.StatusForbidden:           denial.HubForbidden,
		http.StatusTooManyRequests:     denial.HubUnavailable,
		http.StatusUnauthorized:        denial.HubUnavailable,
		http.StatusInternalServerError: denial.HubUnavailable,
		http.StatusUnprocessableEntity: denial.HubUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, status: status}
			e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
			synctest.Wait() // The first list of accounts makes the minter forget that one is missing.
			for range 3 {
				_, _, err := e.Mint(t.Context(), ask("c1"))
				refused, ok := errors.AsType[*denial.Error](err)
				if !ok || refused.Reason != want || refused.RetryAfter <= 0 || refused.Detail == "" {
					t.Errorf("status %d: got %+v", status, err)
				}
			}
			remembered := want == denial.TargetMissing || want == denial.HubForbidden
			if n := hub.count(); (n == 1) != remembered {
				t.Errorf("status %d: %d TokenRequests", status, n)
			}
			pause(6 * time.Second)
			hub.set(func(h *fakeHub) { h.status = 0 })
			if _, _, err := e.Mint(t.Context(), ask("c1")); err != nil {
				t.Errorf("status %d: once mended: %v", status, err)
			}
		})
	}
}

// TestBusyHub has a hub that says for a while that too many ask at once: whoever
// waits gets the token, without asking again.
func TestBusyHub(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, status: http.StatusTooManyRequests}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		go func() {
			pause(3 * time.Second)
			hub.set(func(h *fakeHub) { h.status = 0 })
		}()
		if token, _, err := e.Mint(t.Context(), ask("c1")); err != nil || token.Value == "" {
			t.Errorf("got %v", err)
		}
		if n := hub.count(); n != 3 { // At once, and twice after two seconds each.
			t.Errorf("%d TokenRequests", n)
		}
	})
}

// TestLimits bounds the minting for an identity and for a cluster, and says
// when to come back. Kept tokens are not limited.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
		s := settings("team")
		s.Clusters["c1"] = mint.ClusterSettings{Generation: 1, Limits: mint.Limits{
			Cluster: mint.Rate{PerSecond: 1, Burst: 4}, Identity: mint.Rate{PerSecond: 0.1, Burst: 3},
		}}
		e := run(t, mint.Config{Hub: hub.config()}, s)
		get := func(name string, life time.Duration) *denial.Error {
			r := ask("c1")
			r.Subject.Account.Name, r.Target.Expiration = name, life
			_, _, err := e.Mint(t.Context(), r)
			if err == nil {
				return nil
			}
			return denial.Of(err)
		}
		for i := range 3 { // A different life is a different token.
			if err := get("a", time.Hour+time.Duration(i)*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if err := get("a", 2*time.Hour); err == nil || err.Reason != denial.RateLimited || err.RetryAfter != 10*time.Second {
			t.Errorf("a fourth token for one identity: %+v", err)
		}
		if err := get("a", time.Hour); err != nil {
			t.Errorf("a kept token is limited: %v", err)
		}
		if err := get("b", time.Hour); err != nil {
			t.Errorf("another identity is limited: %v", err)
		}
		if err := get("c", time.Hour); err == nil || err.Reason != denial.RateLimited || err.RetryAfter != time.Second {
			t.Errorf("a fifth token for the cluster: %+v", err)
		}
		if _, _, err := e.Mint(t.Context(), ask("c2")); err != nil {
			t.Errorf("another cluster is limited: %v", err)
		}
		pause(time.Second)
		if err := get("c", time.Hour); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

// TestLimitsSurviveChanges: a change of rules fills no bucket, and a change of a
// limit counts at once.
func TestLimitsSurviveChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
		s := settings("team")
		limit := func(generation uint64, burst int) mint.Settings {
			s.Clusters = maps.Clone(s.Clusters)
			s.Clusters["c1"] = mint.ClusterSettings{Generation: generation, Limits: mint.Limits{
				Cluster: mint.Rate{PerSecond: 1, Burst: burst}, Identity: mint.Rate{PerSecond: 1, Burst: burst},
			}}
			return s
		}
		e := run(t, mint.Config{Hub: hub.config()}, limit(1, 2))
		life := time.Hour
		get := func(generation uint64) denial.Reason {
			life += time.Second // A different life is a different token.
			r := ask("c1")
			r.Generation, r.Target.Expiration = generation, life
			if _, _, err := e.Mint(t.Context(), r); err != nil {
				return denial.Of(err).Reason
			}
			return ""
		}
		got := []denial.Reason{get(1), get(1), get(1)}
		e.Configure(limit(2, 2))
		got = append(got, get(2))
		pause(10 * time.Second) // Two are left again.
		e.Configure(limit(3, 4))
		got = append(got, get(3), get(3), get(3))
		pause(10 * time.Second)
		got = append(got, get(3), get(3), get(3), get(3), get(3))
		no := denial.RateLimited
		if want := []denial.Reason{"", "", no, no, "", "", no, "", "", "", "", no}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestInFlight refuses what would be too much for the hub at a time, and leaves
// room to the other clusters.
func TestInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, delay: time.Second}
		e := run(t, mint.Config{Hub: hub.config(), InFlight: 4}, settings("team"))
		var callers sync.WaitGroup
		var mu sync.Mutex
		refused := map[string]int{}
		flood := func(cluster string) {
			for i := range 5 {
				callers.Go(func() {
					r := ask(cluster)
					r.Subject.Account.Name += string(rune('a' + i))
					if _, _, err := e.Mint(t.Context(), r); err != nil {
						mu.Lock()
						defer mu.Unlock()
						refused[cluster]++
						if denial.Of(err).Reason != denial.HubUnavailable {
							t.Error(err)
						}
					}
				})
			}
			synctest.Wait()
		}
		flood("c1")
		flood("c2")
		flood("c3")
		callers.Wait()
		if refused["c1"] != 3 || refused["c2"] != 4 || refused["c3"] != 4 || hub.count() != 4 {
			t.Errorf("refused %v, %d TokenRequests", refused, hub.count())
		}
	})
}

// TestNothingIsShared: requests that differ in anything that a token depends on
// have different tokens (weakness W1 of the peer).
func TestNothingIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1", "team/other": "u2", "ops/worker": "u3"}}
		e := run(t, mint.Config{Hub: hub.config()}, settings())
		e.Configure(mint.Settings{Clusters: map[string]mint.ClusterSettings{
			"c1": {Generation: 1, Limits: mint.Limits{Identity: mint.Rate{PerSecond: 1, Burst: 100}}}, "c2": {Generation: 1},
		}})
		seen := map[string]string{}
		for name, change := range map[string]func(*mint.Request){
			"the first":                   func(*mint.Request) {},
			"the same UID from elsewhere": func(r *mint.Request) { r.Subject.Cluster = "c2" },
			"another namespace":           func(r *mint.Request) { r.Subject.Account.Namespace = "x" },
			"another name":                func(r *mint.Request) { r.Subject.Account.Name = "x" },
			"another UID":                 func(r *mint.Request) { r.Subject.Account.UID = "x" },
			"another target":              func(r *mint.Request) { r.Target.Name = "other" },
			"another target namespace":    func(r *mint.Request) { r.Target.Namespace = "ops" },
			"an audience":                 func(r *mint.Request) { r.Target.Audiences = []string{"a"} },
			"two audiences":               func(r *mint.Request) { r.Target.Audiences = []string{"a", "b"} },
			"what looks like two":         func(r *mint.Request) { r.Target.Audiences = []string{`"a","b"`} },
			"another life":                func(r *mint.Request) { r.Target.Expiration = time.Hour / 2 },
		} {
			for range 2 {
				r := ask("c1")
				change(&r)
				issued, cached, err := e.Mint(t.Context(), r)
				if err != nil {
					t.Fatal(name, err)
				}
				if earlier, ok := seen[issued.Value]; ok && (earlier != name || !cached) {
					t.Errorf("%s got the token of %s", name, earlier)
				}
				seen[issued.Value] = name
			}
		}
		if len(seen) != 11 || hub.count() != 11 {
			t.Errorf("%d tokens of 11, %d TokenRequests", len(seen), hub.count())
		}
	})
}

// TestForgotten: what the configuration does not allow any more is not handed
// out, nor renewed.
func TestForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		get := func(cluster string) bool {
			t.Helper()
			issued, cached, err := e.Mint(t.Context(), ask(cluster))
			if err != nil || issued.ID == "" {
				t.Fatal(issued.ID, err)
			}
			return cached
		}
		for _, cluster := range []string{"c1", "c2", "c1", "c2"} {
			get(cluster)
		}
		e.EvictCluster("c1")
		if get("c1") || !get("c2") {
			t.Error("not only the cluster that left was forgotten")
		}
		bumped := settings("team")
		bumped.Clusters["c1"] = mint.ClusterSettings{Generation: 2}
		e.Configure(bumped)
		if !get("c2") {
			t.Error("a cluster whose rules did not change lost its tokens")
		}
		for range 2 { // The second for what the first one, late, would leave behind.
			if get("c1") {
				t.Error("a token of old rules was kept")
			}
		}
		delete(bumped.Clusters, "c2")
		e.Configure(bumped)
		before := hub.count()
		pause(2 * time.Hour)
		if n := hub.count(); n != before {
			t.Errorf("%d tokens were renewed that nobody may have", n-before)
		}
	})
}

// TestUnwatched: as long as the hub does not let us watch, a token serves a
// minute and the status says why.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}, blind: true}
		e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
		for i := range 3 {
			if _, cached, err := e.Mint(t.Context(), ask("c1")); err != nil || cached {
				t.Errorf("minute %d: cached %v, %v", i, cached, err)
			}
			pause(30 * time.Second)
			if _, cached, err := e.Mint(t.Context(), ask("c1")); err != nil || !cached {
				t.Errorf("half a minute later: cached %v, %v", cached, err)
			}
			pause(31 * time.Second)
		}
		status := e.Status()
		if len(status) != 1 || status[0].Synced || status[0].Err == nil {
			t.Errorf("status %+v", status)
		}
	})
}

func TestExpiresIn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for _, tc := range []struct {
		subject, issued, want time.Duration
		reason                denial.Reason
	}{
		{subject: 10 * time.Minute, issued: time.Hour, want: 10 * time.Minute},
		{subject: 2 * time.Hour, issued: time.Hour, want: time.Hour},
		{subject: time.Minute, issued: time.Hour, want: time.Minute},
		{subject: 59 * time.Second, issued: time.Hour, reason: denial.Expired},
		{subject: -time.Second, issued: time.Hour, reason: denial.Expired},
	} {
		id := subject.Identity{Token: subject.Token{NotAfter: now.Add(tc.subject)}}
		got, err := mint.ExpiresIn(mint.Token{Expires: now.Add(tc.issued)}, id, now)
		if got != tc.want || (tc.reason != "") != (err != nil) || err != nil && denial.Of(err).Reason != tc.reason {
			t.Errorf("subject %v, issued %v: got %v, %v", tc.subject, tc.issued, got, err)
		}
	}
	if got, err := mint.ExpiresIn(mint.Token{Expires: now.Add(24 * time.Hour)}, subject.Identity{}, now); err != nil || got != time.Hour {
		t.Errorf("a token without an end: %v, %v", got, err)
	}
}
