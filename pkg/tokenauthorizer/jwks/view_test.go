package jwks_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// keyed is a Store or a View.
type keyed interface {
	Lookup(ctx context.Context, issuer, kid string) ([]jwks.Key, error)
}

// TestViews: whoever configured the clusters gets each View of that configuration
// and none of another, before a lookup can see it.
func TestViews(t *testing.T) {
	t.Parallel()
	one, two, three := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	names := map[string]string{one.ID: "one", two.ID: "two", three.ID: "three"}
	keys := func(v keyed) string {
		var out []string
		for _, id := range []string{one.ID, two.ID, three.ID} {
			if found, err := v.Lookup(t.Context(), sharedIssuer, id); err == nil && len(found) == 1 {
				out = append(out, names[id])
			}
		}
		return strings.Join(out, " ")
	}
	e := newEnv(t)
	views := map[string][]*jwks.View{}
	publish := func(configuration string) func(*jwks.View) {
		return func(v *jwks.View) {
			views[configuration] = append(views[configuration], v)
			if now := e.Generation("cluster1"); now != 0 && now == v.Generation("cluster1") {
				t.Errorf("%s: a View counted before it was published", configuration)
			}
		}
	}
	e.must(t, e.Configure([]jwks.Cluster{inline(t, "cluster1", sharedIssuer, one, three)}, publish("first")))
	e.must(t, e.Configure([]jwks.Cluster{inline(t, "cluster1", sharedIssuer, two, three)}, publish("second")))
	if err := e.Configure([]jwks.Cluster{inline(t, "cluster1", "", one)}, publish("broken")); err == nil {
		t.Error("a cluster without an issuer was taken")
	}
	e.must(t, e.Configure([]jwks.Cluster{inline(t, "cluster1", sharedIssuer, two)}, nil))
	if len(views["first"]) != 1 || len(views["second"]) != 1 || len(views["broken"]) != 0 {
		t.Fatalf("got %d, %d and %d Views", len(views["first"]), len(views["second"]), len(views["broken"]))
	}
	// What a View has stays; what it does not have is looked for in the latest one.
	got := []string{keys(views["first"][0]), keys(views["second"][0]), keys(e)}
	if diff := cmp.Diff([]string{"one two three", "two three", "two"}, got); diff != "" {
		t.Errorf("keys of the first View, of the second, and now (-want +got):\n%s", diff)
	}
}

// TestViewsOfLaterChanges: a View follows each change of keys that no
// configuration made.
func TestViewsOfLaterChanges(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	e := newEnv(t)
	e.Store = jwks.New(jwks.Config{Hub: true, Clock: e.clock})
	var views []*jwks.View
	e.must(t, e.Configure([]jwks.Cluster{{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}}, func(v *jwks.View) { views = append(views, v) }))
	e.HubSynced()
	e.publish(t, "cluster1", sharedIssuer, key)
	e.Forget("cluster1")
	var known []bool
	for _, v := range views {
		known = append(known, v.Generation("cluster1") != 0)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, known); diff != "" {
		t.Errorf("Views that have the cluster's key (-want +got):\n%s", diff)
	}
	e.refuses(t, sharedIssuer, key.ID, denial.UnknownIssuer)
}

func (e *env) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
