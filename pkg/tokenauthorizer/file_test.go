package tokenauthorizer_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
)

// TestNewMode is tokensmith's design, "Usage", "New Mode": a file of its form works as it
// says, and one warning says what it leaves open.
func TestNewMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	write(t, path, w.openFile(t))
	w.startReady(t, tokenauthorizer.Source{File: path})
	w.becomes(t, w.token(t), w.user())
	w.becomes(t, w.token(t, "https://anybody.example.com"), w.user())
	if n := w.logs.count("has no policy"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	if got := w.status(t).Configuration.Warnings; len(got) != 1 || !strings.Contains(got[0], "--strict") {
		t.Errorf("/clusters warns %q", got)
	}
}

// TestLegacyMode is tokensmith's design, "Usage", "Legacy Mode": --workload-kubeconfig.
func TestLegacyMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startReady(t, tokenauthorizer.Source{Workload: hub.Config(t)})
	w.becomes(t, w.token(t), w.user())
	if status, _ := w.check(t.Context(), w.token(t)+"x"); status != http.StatusUnauthorized {
		t.Errorf("a forged token: %d", status)
	}
	if got := w.status(t); !got.Ready || !strings.HasPrefix(got.Configuration.Source, "TokenReview") {
		t.Errorf("/clusters tells %+v", got)
	}
}

// TestSource: there is one, and a file is judged at the start.
func TestSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	open := filepath.Join(dir, "open.yaml")
	write(t, open, w.openFile(t))
	broken := filepath.Join(dir, "broken.yaml")
	write(t, broken, "clusters: [{nam: x}]")
	for name, tc := range map[string]struct {
		source tokenauthorizer.Source
		want   string
	}{
		"none":             {tokenauthorizer.Source{}, "exactly one source"},
		"two":              {tokenauthorizer.Source{File: open, Workload: hub.Config(t)}, "exactly one source"},
		"a missing file":   {tokenauthorizer.Source{File: filepath.Join(dir, "none")}, "no such file"},
		"a broken file":    {tokenauthorizer.Source{File: broken}, "nam"},
		"strict, but open": {tokenauthorizer.Source{File: open, Options: config.Options{Strict: true}}, "no policy"},
	} {
		err := tokenauthorizer.Setup(t.Context(), nil, tokenauthorizer.Config{Source: tc.source, Hub: hub.Config(t), Server: endpoints(t)})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// load asks without a break, and fails the test with the first request that is
// not answered as it should be.
func (w *world) load(t *testing.T, token string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if status, _ := w.check(t.Context(), token); status != http.StatusOK {
					t.Errorf("lost a request: %d", status)
					return
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// TestBrokenAndFixed: a configuration that cannot be used leaves the last good
// one in force and is told, and no request is lost while it comes and goes.
func TestBrokenAndFixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	good := w.file(t, "app-*")
	write(t, path, good)
	w.startReady(t, tokenauthorizer.Source{File: path})
	token := w.token(t, audience)
	w.becomes(t, token, w.user())
	stop := w.load(t, token)
	for i, broken := range []string{"clusters: [{", "", good + "  unknown: 1\n", strings.Replace(good, "RSA", "oct", 1), strings.ReplaceAll(good, issuer, "")} {
		write(t, path, broken)
		await.Condition(t, patience, "the broken one is told", func(context.Context) (bool, error) {
			return w.gauge(t, "ocm_extauthz_config_last_reload_successful") == 0 && w.status(t).Configuration.Error != "", nil
		})
		if got := w.get(t, "/readyz?verbose", http.StatusOK); !strings.Contains(got, "[-]configuration "+path) || !strings.Contains(got, "[+]ready") {
			t.Errorf("/readyz?verbose tells:\n%s", got)
		}
		at := w.status(t).Configuration.LoadedAt
		write(t, path, good+"# "+strings.Repeat("x", i)+"\n")
		await.Condition(t, patience, "the mended one is in force", func(context.Context) (bool, error) {
			now := w.status(t).Configuration
			return now.Error == "" && now.LoadedAt.After(at), nil
		})
		if w.gauge(t, "ocm_extauthz_config_last_reload_successful") != 1 {
			t.Error("the metric does not tell that it was mended")
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, patience, "the missing one is told", func(context.Context) (bool, error) {
		return strings.Contains(w.status(t).Configuration.Error, "no such file"), nil
	})
	stop()

	// A rule that goes takes effect for the next request.
	write(t, path, w.file(t, "elsewhere"))
	w.turns(t, token, http.StatusForbidden)
	write(t, path, strings.Replace(good, issuer, "https://elsewhere.example.com", 1))
	w.turns(t, token, http.StatusUnauthorized)
}

// TestMount: the kubelet replaces a link in the mount of a ConfigMap, never the
// file.
func TestMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mount := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(mount, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(mount, name, "clusters.yaml"), text)
		if err := os.Symlink(name, filepath.Join(mount, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", w.file(t, "elsewhere"))
	path := filepath.Join(mount, "clusters.yaml")
	if err := os.Symlink(filepath.Join("..data", "clusters.yaml"), path); err != nil {
		t.Fatal(err)
	}
	w.startReady(t, tokenauthorizer.Source{File: path})
	token := w.token(t, audience)
	w.turns(t, token, http.StatusForbidden)
	version("..2", w.file(t, "app-*"))
	w.turns(t, token, http.StatusOK)
	stop := w.load(t, token)
	for _, name := range []string{"..3", "..4", "..5"} {
		at := w.status(t).Configuration.LoadedAt
		version(name, w.file(t, "app-*")+"# "+name+"\n")
		await.Condition(t, patience, "it is in force", func(context.Context) (bool, error) {
			return w.status(t).Configuration.LoadedAt.After(at), nil
		})
	}
	stop()
}

// TestClusters: /clusters tells about each cluster, and what was decided (tokensmith's
// design, "Future Enhancements" 3 and 5).
func TestClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	write(t, path, w.file(t, "app-*")+`
- name: cluster2
  issuer: https://c2.example.com
  keys: {jwksURI: "https://127.0.0.1:1/keys"}
  allow: []
`)
	w.startReady(t, tokenauthorizer.Source{File: path})
	token := w.token(t, audience)
	for range 3 {
		w.becomes(t, token, w.user())
	}
	if status, _ := w.check(t.Context(), w.token(t, "https://other.example.com")); status != http.StatusUnauthorized {
		t.Errorf("another audience: %d", status)
	}
	got := w.status(t)
	if !got.Ready || len(got.Clusters) != 2 {
		t.Fatalf("got %+v", got)
	}
	one, two := got.Clusters[0], got.Clusters[1]
	if one.Name != "cluster1" || one.Source != "inline" || len(one.Keys) == 0 || one.Rules != 1 ||
		one.Requests["allowed"] != 3 || one.Requests["denied"] != 1 {
		t.Errorf("cluster1: %+v", one)
	}
	if two.Name != "cluster2" || !two.Tried || len(two.Keys) != 0 || two.Error == "" || two.Rules != 0 {
		t.Errorf("cluster2: %+v", two)
	}
	verbose := w.get(t, "/readyz?verbose", http.StatusOK)
	for _, line := range []string{"[+]configuration", "[+]cluster cluster1: ", "[-]cluster cluster2: ", "[+]ready"} {
		if !strings.Contains(verbose, line) {
			t.Errorf("no %q in:\n%s", line, verbose)
		}
	}
	w.stop()
	if w.serving(t.Context()) || w.observed.ready(nil) == nil {
		t.Error("still ready after the end")
	}
	w.get(t, "/readyz", http.StatusServiceUnavailable)
}

// TestForbidden: where the hub does not let us mint, the role that is missing is
// told until it is there.
func TestForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	write(t, path, w.file(t, "app-*"))
	w.startReady(t, tokenauthorizer.Source{File: path})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: policy.RoleName}}
	admin := hub.Client(t)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	rules := role.Rules
	role.Rules = nil
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	token := w.token(t, audience)
	w.turns(t, token, http.StatusServiceUnavailable)
	line := "[-]target " + w.namespace + "/reader: "
	if got := w.get(t, "/readyz?verbose", http.StatusOK); !strings.Contains(got, line) || !strings.Contains(got, "exchange rbac") {
		t.Errorf("no %q in:\n%s", line, got)
	}
	role.Rules = rules
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	w.turns(t, token, http.StatusOK)
	if got := w.status(t).Forbidden; len(got) > 0 {
		t.Errorf("still told: %+v", got)
	}
}
