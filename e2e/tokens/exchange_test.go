package tokens_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/extauthzproxy"
)

// TestExchange is about what happens between the authorizer and the hub, with
// one cluster whose keys are in the configuration.
func TestExchange(t *testing.T) {
	t.Parallel()
	e := &exchangeWorld{c: newCluster(t)}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"1,000 cold calls at once make one TokenRequest", e.coldCalls},
		{"a ServiceAccount of the hub that is deleted and made again", e.recreated},
		{"a configuration that is broken and mended under load", e.reload},
		{"an authorizer that is killed under load", e.killed},
		{"headers that clients must not choose", e.headers},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

type exchangeWorld struct {
	c *cluster
}

// config is a configuration for the cluster, whose tokens become namespace/reader.
func (e *exchangeWorld) config(t *testing.T, namespace string) string {
	t.Helper()
	return "clusters:" + policyFor("cluster1", fmt.Sprintf("{jwks: %s}", e.c.KeySet(t)), namespace)
}

// world is a proxy with an authorizer for namespace/reader.
func (e *exchangeWorld) world(t *testing.T, namespace string) *front {
	t.Helper()
	target(t, namespace, "reader")
	a := newAuthorizer(t, "--clusters-config="+writeFile(t, "clusters.yaml", []byte(e.config(t, namespace)))).ready(t)
	return newFront(t, []*authorizer{a}, nil)
}

func (e *exchangeWorld) coldCalls(t *testing.T) {
	f := e.world(t, "cold")
	token := e.c.mint(t, "app", "web", audience)
	const many = 1000
	var calls sync.WaitGroup
	var late atomic.Int64
	begin := make(chan struct{})
	for range many {
		calls.Go(func() {
			<-begin
			got := f.whoAmI(t.Context(), token)
			for ; got.status == http.StatusServiceUnavailable; got = f.whoAmI(t.Context(), token) {
				late.Add(1) // The hub took longer than the authorizer waits.
			}
			if got.user.Username != serviceAccount("cold", "reader") {
				t.Errorf("got %v", got)
			}
		})
	}
	close(begin)
	calls.Wait()
	if got, most := minted(t, "cold", "reader"), 1+(late.Load()+many-1)/many; got < 1 || int64(got) > most {
		t.Errorf("the hub issued %d tokens, want at most %d", got, most)
	}
}

func (e *exchangeWorld) recreated(t *testing.T) {
	f := e.world(t, "recreated")
	token, user := e.c.mint(t, "app", "web", audience), serviceAccount("recreated", "reader")
	admin := hub.Client(t)
	f.expect(t, token, user)
	before := f.whoAmI(t.Context(), token).user.UID
	if err := admin.Delete(t.Context(), account(t, admin, "recreated", "reader")); err != nil {
		t.Fatal(err)
	}
	f.ends(t, token, http.StatusForbidden)
	account(t, admin, "recreated", "reader")
	await.Completion(t, patience, func(ctx context.Context) string {
		if got := f.whoAmI(ctx, token); got.user.Username != user || got.user.UID == before {
			return got.String()
		}
		return ""
	})
}

// reload changes the file as a kubelet changes a mounted ConfigMap: the link
// ..data goes to another directory.
func (e *exchangeWorld) reload(t *testing.T) {
	mount := t.TempDir()
	versions := 0
	put := func(content string) {
		versions++
		dir := fmt.Sprintf("..%d", versions)
		if err := os.Mkdir(filepath.Join(mount, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mount, dir, "clusters.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(mount, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(mount, "..new"), filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	target(t, "reload", "reader")
	good := e.config(t, "reload")
	put(good)
	if err := os.Symlink("..data/clusters.yaml", filepath.Join(mount, "clusters.yaml")); err != nil {
		t.Fatal(err)
	}
	a := newAuthorizer(t, "--clusters-config="+filepath.Join(mount, "clusters.yaml")).ready(t)
	f := newFront(t, []*authorizer{a}, nil)
	web, batch := e.c.mint(t, "app", "web", audience), e.c.mint(t, "batch", "job", audience)
	f.refused(t, batch, http.StatusForbidden, "not_allowed")
	f.becomes(t, web, serviceAccount("reload", "reader"))
	stop := f.load(t, 4, func() string { return web }, serviceAccount("reload", "reader"))

	put("clusters: [}")
	await.Completion(t, patience, func(context.Context) string {
		if !strings.Contains(a.logged(), "clusters.yaml") {
			return "nothing is said about the broken file"
		}
		return ""
	})
	put(strings.Replace(good, "clusters:", "clusterz:", 1))
	// A good one with one rule more is taken over.
	put(good + "  - namespaces: [batch]\n    mapTo: {namespace: reload, name: reader}\n")
	f.becomes(t, batch, serviceAccount("reload", "reader"))
	// And without it again: it stops with the next request after the change.
	put(good)
	f.ends(t, batch, http.StatusForbidden)
	stop()
}

// killed has two authorizers, of which each is killed once. Envoy's one retry
// makes that nobody notices.
func (e *exchangeWorld) killed(t *testing.T) {
	target(t, "killed", "reader")
	config := writeFile(t, "clusters.yaml", []byte(e.config(t, "killed")))
	both := []*authorizer{newAuthorizer(t, "--clusters-config="+config).ready(t), newAuthorizer(t, "--clusters-config="+config).ready(t)}
	f := newFront(t, both, func(c *extauthzproxy.Config) { c.Retry = true })
	token := e.c.mint(t, "app", "web", audience)
	for _, a := range both { // The proxy may need several tries to connect to one.
		await.Completion(t, patience, func(ctx context.Context) string {
			f.whoAmI(ctx, token)
			return a.unasked(ctx)
		})
	}
	f.expect(t, token, serviceAccount("killed", "reader"))
	stop := f.load(t, 8, func() string { return token }, serviceAccount("killed", "reader"))
	for _, a := range both {
		a.kill()
		a.start(t)
		a.ready(t)
		// The proxy has found it again before the other one goes.
		await.Completion(t, patience, a.unasked)
	}
	stop()
}

func (e *exchangeWorld) headers(t *testing.T) {
	f := e.world(t, "headers")
	token, user := e.c.mint(t, "app", "web", audience), serviceAccount("headers", "reader")
	// The mapped ServiceAccount may impersonate anybody; its workload may not.
	grantImpersonation(t, user)
	f.becomes(t, token, user)
	for name, values := range map[string][]string{
		"Impersonate-User": {"system:admin"}, "Impersonate-Group": {"system:masters"}, "Impersonate-Extra-Scopes": {"all"}, "Impersonate-Uid": {"1"},
	} {
		got := f.send(t.Context(), http.Header{"Authorization": {"Bearer " + token}, "Impersonate-User": {"system:admin"}, name: values})
		if got.user.Username != user || len(got.user.Extra["scopes"]) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	got := f.send(t.Context(), http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}})
	if got.status != http.StatusUnauthorized {
		t.Errorf("two tokens: %v", got)
	}
	f.refused(t, e.c.mint(t, "app", "web", "https://somebody.example.com"), http.StatusUnauthorized, "wrong_audience")
	f.refused(t, e.c.mint(t, "app", "web"), http.StatusUnauthorized, "wrong_audience")
	f.refused(t, e.c.mint(t, "other", "web", audience), http.StatusForbidden, "not_allowed")
}

func grantImpersonation(t *testing.T, user string) {
	t.Helper()
	admin := hub.Client(t)
	for _, obj := range impersonation(user) {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), obj) })
	}
}
