package authorizer_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// chain is all stages, and remembers which were asked.
type chain struct {
	mu    sync.Mutex
	asked []string
	// fail has a stage refuse.
	fail map[string]error
	// identity is what every token proves.
	identity subject.Identity
	got      mint.Request
	events   []authorizer.Event
}

func (c *chain) ask(stage string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, stage)
	return c.fail[stage]
}

func (c *chain) Verify(context.Context, string) (subject.Identity, error) {
	return c.identity, c.ask("verify")
}

func (c *chain) Decide(subject.Identity) (policy.Grant, error) {
	return policy.Grant{Rule: "r", Target: policy.Target{Namespace: "team", Name: "reader"}}, c.ask("decide")
}

func (c *chain) Review(_ context.Context, cluster, _ string, _ subject.Identity) error {
	return c.ask("review " + cluster)
}

func (c *chain) Mint(_ context.Context, r mint.Request) (mint.Token, bool, error) {
	c.got = r
	return mint.Token{Value: "issued"}, true, c.ask("exchange")
}

func (c *chain) Record(e authorizer.Event) { c.events = append(c.events, e) }

func (c *chain) snapshot() authorizer.Snapshot {
	return authorizer.Snapshot{Verifier: c, Clusters: map[string]*authorizer.Cluster{
		"c1": {Rules: c, Reviewer: c, Generation: 7},
		"c2": {Rules: c},
	}}
}

func newAuthorizer(t *testing.T, c *chain, metrics prometheus.Registerer) *authorizer.Authorizer {
	t.Helper()
	a, err := authorizer.New(authorizer.Config{Minter: c, Auditor: c, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOrder takes each stage in turn, and none after one that refuses.
func TestOrder(t *testing.T) {
	t.Parallel()
	whole := []string{"verify", "decide", "review c1", "exchange"}
	for i, stage := range whole {
		c := &chain{identity: subject.Identity{Cluster: "c1"}, fail: map[string]error{stage: denial.New(denial.NotAllowed, "no")}}
		a := newAuthorizer(t, c, nil)
		a.Swap(c.snapshot())
		d, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"})
		if err == nil || d.Token.Value != "" || denial.Of(err).Reason != denial.NotAllowed {
			t.Errorf("%s refuses: got %+v, %v", stage, d, err)
		}
		if diff := cmp.Diff(whole[:i+1], c.asked); diff != "" {
			t.Errorf("%s refuses: %s", stage, diff)
		}
		if len(c.events) != 1 || c.events[0].Err == nil || c.events[0].Decision.Identity.Cluster != "c1" {
			t.Errorf("%s refuses: told %+v", stage, c.events)
		}
	}
	c := &chain{identity: subject.Identity{Cluster: "c1"}}
	a := newAuthorizer(t, c, nil)
	a.Swap(c.snapshot())
	d, err := a.Authorize(t.Context(), authorizer.Request{Token: "t", Origin: authorizer.Origin{RequestID: "r"}})
	if err != nil || d.Token.Value != "issued" || !d.Cached || d.Grant.Rule != "r" {
		t.Errorf("got %+v, %v", d, err)
	}
	if diff := cmp.Diff(whole, c.asked); diff != "" {
		t.Error(diff)
	}
	if c.got.Generation != 7 || c.got.Target.Name != d.Grant.Target.Name {
		t.Errorf("asked for %+v", c.got)
	}
	if len(c.events) != 1 || c.events[0].Err != nil || c.events[0].Origin.RequestID != "r" {
		t.Errorf("told %+v", c.events)
	}
}

// TestDenials that no stage makes.
func TestDenials(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ended := errors.New("the stage noticed that the context ended")
	for _, tc := range []struct {
		name     string
		ctx      context.Context //nolint:containedctx // it is what the case is about
		token    string
		cluster  string
		fail     error
		unloaded bool
		want     denial.Reason
	}{
		{name: "no token", ctx: t.Context(), cluster: "c1", want: denial.MissingToken},
		{name: "no configuration", ctx: t.Context(), token: "t", cluster: "c1", unloaded: true, want: denial.KeysUnavailable},
		{name: "a cluster without an entry", ctx: t.Context(), token: "t", cluster: "c3", want: denial.NotAllowed},
		{name: "the caller has gone", ctx: gone, token: "t", cluster: "c1", fail: ended, want: denial.Deadline},
		{name: "an error without a reason", ctx: t.Context(), token: "t", cluster: "c1", fail: errors.New("what"), want: denial.HubUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &chain{identity: subject.Identity{Cluster: tc.cluster}, fail: map[string]error{"verify": tc.fail}}
			a := newAuthorizer(t, c, nil)
			if !tc.unloaded {
				a.Swap(c.snapshot())
			}
			_, err := a.Authorize(tc.ctx, authorizer.Request{Token: tc.token})
			if refused, ok := errors.AsType[*denial.Error](err); !ok || refused.Reason != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestAnyCluster: its entry is for those that have none, and only for them.
func TestAnyCluster(t *testing.T) {
	t.Parallel()
	c := &chain{identity: subject.Identity{Cluster: "c2"}}
	a := newAuthorizer(t, c, nil)
	s := c.snapshot()
	s.Clusters[policy.AnyCluster] = &authorizer.Cluster{Rules: c, Reviewer: c, Generation: 9}
	a.Swap(s)
	for cluster, generation := range map[string]uint64{"c1": 7, "c2": 0, "c3": 9} {
		c.identity.Cluster = cluster
		if _, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"}); err != nil || c.got.Generation != generation {
			t.Errorf("%s: generation %d, %v", cluster, c.got.Generation, err)
		}
	}
}

// TestMetrics has no label that a token could choose.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := &chain{fail: map[string]error{}}
	a := newAuthorizer(t, c, registry)
	a.Swap(c.snapshot())
	ask := func(cluster, stage string, reason denial.Reason) {
		c.identity.Cluster = cluster
		clear(c.fail)
		if reason != "" {
			c.fail[stage] = denial.New(reason, "no")
		}
		_, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"})
		if (err != nil) != (reason != "") {
			t.Error(err)
		}
	}
	ask("c1", "", "")
	ask("c1", "", "")
	ask("c1", "exchange", denial.HubUnavailable)
	ask("c1", "review c1", denial.Revoked)
	ask("c1", "exchange", denial.RateLimited)
	ask("", "verify", denial.BadSignature)
	ask("chosen-by-the-token", "verify", denial.Expired)
	want := map[string]float64{
		"requests_total c1 allowed":                   2,
		"requests_total c1 hub_unavailable error":     1,
		"requests_total c1 revoked denied":            1,
		"requests_total c1 rate_limited denied":       1,
		"requests_total unknown bad_signature denied": 1,
		"requests_total unknown expired denied":       1,
		"reviews_total c1 allowed":                    4,
		"reviews_total c1 revoked":                    1,
		"rate_limited_total c1":                       1,
		"request_duration_seconds c1 allowed":         2,
		"request_duration_seconds c1 denied":          2,
		"request_duration_seconds c1 error":           1,
		"request_duration_seconds unknown denied":     2,
		"stage_duration_seconds verify":               7,
		"stage_duration_seconds policy":               5,
		"stage_duration_seconds review":               5,
		"stage_duration_seconds exchange":             4,
	}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Error(diff)
	}
}

// gathered is each metric with its label values, and its value or count.
func gathered(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name, ok := strings.CutPrefix(family.GetName(), "ocm_extauthz_")
			if !ok {
				t.Errorf("%s has not our prefix", family.GetName())
			}
			words := []string{name}
			for _, label := range m.GetLabel() {
				if label.GetValue() != "" {
					words = append(words, label.GetValue())
				}
			}
			all[strings.Join(words, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// TestSwapUnderLoad: each request has one configuration, from its first stage
// to its last. One whose cluster changes too often in between is put off.
func TestSwapUnderLoad(t *testing.T) {
	t.Parallel()
	var pairs pairing
	a, err := authorizer.New(authorizer.Config{Minter: &pairs})
	if err != nil {
		t.Fatal(err)
	}
	a.Swap(pairs.snapshot(0))
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	work.Go(func() {
		for i := uint64(1); ctx.Err() == nil; i++ {
			a.Swap(pairs.snapshot(i))
		}
	})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 5000 {
				d, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"})
				if err != nil && denial.Of(err).Reason == denial.KeysUnavailable {
					continue
				}
				if err != nil || d.Identity.Token.ID != d.Token.ID || d.Grant.Rule != d.Token.ID {
					t.Errorf("verified under %s, granted under %s, exchanged under %s: %v", d.Identity.Token.ID, d.Grant.Rule, d.Token.ID, err)
					return
				}
			}
		})
	}
	callers.Wait()
	cancel()
	work.Wait()
	if _, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"}); err != nil {
		t.Errorf("after the last change: %v", err)
	}
}

// pairing tells in the exchange under which snapshot it was asked.
type pairing struct{}

type generation string

func (g generation) Verify(context.Context, string) (subject.Identity, error) {
	return subject.Identity{Cluster: "c1", Token: subject.Token{ID: string(g)}}, nil
}

func (g generation) Decide(subject.Identity) (policy.Grant, error) {
	return policy.Grant{Rule: string(g)}, nil
}

func (*pairing) snapshot(i uint64) authorizer.Snapshot {
	g := generation(name(i))
	return authorizer.Snapshot{Verifier: g, Clusters: map[string]*authorizer.Cluster{"c1": {Rules: g, Generation: i}}}
}

func (*pairing) Mint(_ context.Context, r mint.Request) (mint.Token, bool, error) {
	return mint.Token{ID: name(r.Generation)}, true, nil
}

func name(i uint64) string { return strconv.FormatUint(i, 10) }

// restless is a verifier under which the cluster changes whenever a token of it is
// verified, so many times.
type restless struct {
	change func(left int)
	left   int
}

func (r *restless) Verify(context.Context, string) (subject.Identity, error) {
	if r.left > 0 {
		r.left--
		r.change(r.left)
	}
	return subject.Identity{Cluster: "c1"}, nil
}

// TestAClusterThatKeepsChanging is decided under what holds in the end, and is
// refused where there is no end.
func TestAClusterThatKeepsChanging(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		changes int
		// keys has the keys' generation change, not the rules.
		keys bool
		want denial.Reason
	}{
		{name: "rules, three times", changes: 3},
		{name: "keys, three times", changes: 3, keys: true},
		{name: "rules, without an end", changes: 100, want: denial.KeysUnavailable},
		{name: "keys, without an end", changes: 100, keys: true, want: denial.KeysUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var pairs pairing
			a, err := authorizer.New(authorizer.Config{Minter: &pairs})
			if err != nil {
				t.Fatal(err)
			}
			verifier := &restless{left: tc.changes}
			same := &authorizer.Cluster{Rules: generation("same")}
			verifier.change = func(left int) {
				s := authorizer.Snapshot{Verifier: verifier, Clusters: map[string]*authorizer.Cluster{"c1": same}}
				if tc.keys {
					s.Generation = func(string) uint64 { return uint64(1 + left) }
				} else {
					s.Clusters["c1"] = &authorizer.Cluster{Rules: generation(name(uint64(left))), Generation: uint64(left)}
				}
				a.Swap(s)
			}
			a.Swap(authorizer.Snapshot{Verifier: verifier, Clusters: map[string]*authorizer.Cluster{"c1": same}})
			d, err := a.Authorize(t.Context(), authorizer.Request{Token: "t"})
			switch {
			case tc.want != "" && (err == nil || denial.Of(err).Reason != tc.want || denial.Of(err).RetryAfter <= 0 || d.Token != (mint.Token{})):
				t.Errorf("got %+v, %v, want %s", d, err, tc.want)
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want == "" && !tc.keys && d.Grant.Rule != "0":
				t.Errorf("decided under the rules %s, and the last are 0", d.Grant.Rule)
			}
		})
	}
}

// TestWarmAllocates nothing of its own.
func TestWarmAllocates(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	a, request := warm(t)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := a.Authorize(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func warm(tb testing.TB) (*authorizer.Authorizer, authorizer.Request) {
	tb.Helper()
	var pairs pairing
	a, err := authorizer.New(authorizer.Config{Minter: &pairs, Metrics: prometheus.NewRegistry()})
	if err != nil {
		tb.Fatal(err)
	}
	a.Swap(pairs.snapshot(0))
	return a, authorizer.Request{Token: "t"}
}

// BenchmarkWarmAuthorize is what the chain itself costs, with stages that cost
// nothing.
func BenchmarkWarmAuthorize(b *testing.B) {
	a, request := warm(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Authorize(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
	})
}
