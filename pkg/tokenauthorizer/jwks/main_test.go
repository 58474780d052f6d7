package jwks_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// sharedIssuer is what kubeadm, kind and k3s call every cluster's issuer.
const (
	sharedIssuer = "https://kubernetes.default.svc.cluster.local"
	patience     = await.Patience
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, controlplane.Connections()) }

// env is a store that runs by a clock that only the test moves.
type env struct {
	*jwks.Store

	clock *clocktesting.FakeClock
}

// newEnv returns a store of clusters that is not running.
func newEnv(t *testing.T, clusters ...jwks.Cluster) *env {
	t.Helper()
	e := &env{clock: clocktesting.NewFakeClock(time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC))}
	e.Store = jwks.New(jwks.Config{Clock: e.clock})
	e.configure(t, clusters...)
	return e
}

// start returns a running store whose clusters were all tried.
func start(t *testing.T, clusters ...jwks.Cluster) *env {
	t.Helper()
	e := newEnv(t, clusters...)
	e.run(t)
	await.Success(t, patience, "every source was tried", func(context.Context) error { return e.Ready() })
	return e
}

func (e *env) configure(t *testing.T, clusters ...jwks.Cluster) {
	t.Helper()
	if err := e.Configure(clusters, nil); err != nil {
		t.Fatal(err)
	}
}

// run runs the store until the end of the test.
func (e *env) run(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// pass lets time pass in steps, after each of which what became due was done.
func (e *env) pass(t *testing.T, total, step time.Duration) {
	t.Helper()
	for ; total > 0; total -= step {
		e.clock.Step(min(step, total))
		e.settle(t)
	}
}

// settle waits until nothing is due.
func (e *env) settle(t *testing.T) {
	t.Helper()
	now := e.clock.Now()
	await.Completion(t, patience, func(context.Context) string {
		for _, status := range e.Status() {
			if !status.NextRefresh.IsZero() && !now.Before(status.NextRefresh) {
				return "cluster " + status.Cluster + " is due"
			}
		}
		if !e.clock.HasWaiters() {
			return "the store waits for its clock"
		}
		return ""
	})
}

func (e *env) status(t *testing.T, cluster string) jwks.Status {
	t.Helper()
	all := e.Status()
	i := slices.IndexFunc(all, func(s jwks.Status) bool { return s.Cluster == cluster })
	if i < 0 {
		t.Fatalf("no status of cluster %s in %+v", cluster, all)
	}
	return all[i]
}

// verifies checks that key's signatures under issuer name exactly these clusters.
func (e *env) verifies(t *testing.T, iss string, key *issuer.Key, clusters ...string) {
	t.Helper()
	found, err := e.Lookup(t.Context(), iss, key.ID)
	if err != nil {
		t.Errorf("key of %v: %v", clusters, err)
		return
	}
	token, err := jwk.ParseToken(key.Token(t, map[string]any{"iss": iss}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, candidate := range found {
		if candidate.Verify(token) == nil {
			names = append(names, candidate.Cluster)
		}
	}
	if !slices.Equal(names, clusters) {
		t.Errorf("the signature names %v, want %v", names, clusters)
	}
}

// accepted is a cluster that the hub accepts and that has joined.
func accepted(name string) keytrust.Cluster {
	return keytrust.Cluster{Name: name, UID: "uid-of-" + name, Accepted: true, Joined: true}
}

// candidate is such a cluster with keys that it has proven.
func candidate(tb testing.TB, name, iss string, keys ...*issuer.Key) keytrust.Candidate {
	tb.Helper()
	c := accepted(name)
	return keytrust.Candidate{Cluster: c, Data: issuer.Published(tb, iss, c.Name, c.UID, keys...)}
}

// moved returns a function that reports whether the generation of a cluster has
// moved since it was asked last.
func (e *env) moved(cluster string) func() bool {
	before := e.Generation(cluster)
	return func() bool {
		now := e.Generation(cluster)
		defer func() { before = now }()
		return now != before
	}
}

// refuses checks the reason for which a key is not found.
func (e *env) refuses(t *testing.T, iss, kid string, want denial.Reason) {
	t.Helper()
	if keys, err := e.Lookup(t.Context(), iss, kid); reason(err) != want || keys != nil {
		t.Errorf("Lookup: %d keys, %v; want %s", len(keys), err, want)
	}
}

func reason(err error) denial.Reason {
	if denied, ok := errors.AsType[*denial.Error](err); ok {
		return denied.Reason
	}
	return ""
}

func inline(tb testing.TB, name, iss string, keys ...*issuer.Key) jwks.Cluster {
	tb.Helper()
	return jwks.Cluster{Name: name, Issuer: iss, Source: jwks.Source{Inline: issuer.JWKS(tb, keys...)}}
}

func remote(name, iss string, p *issuer.Provider) jwks.Cluster {
	return jwks.Cluster{Name: name, Issuer: iss, Source: jwks.Source{URI: p.URL + issuer.KeysPath, CA: p.CA}}
}
