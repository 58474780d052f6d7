package jwks_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/keytrust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

func everyone() jwks.Cluster {
	return jwks.Cluster{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}
}

// publish has an accepted cluster publish keys that it has proven.
func (e *env) publish(t *testing.T, cluster, iss string, keys ...*issuer.Key) {
	t.Helper()
	if err := e.Observe(candidate(t, cluster, iss, keys...)); err != nil {
		t.Fatal(err)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	old, fresh := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, everyone())
	e.refuses(t, sharedIssuer, old.ID, denial.UnknownIssuer)
	e.publish(t, "c1", sharedIssuer, old)
	e.verifies(t, sharedIssuer, old, "c1")
	moved := e.moved("c1")
	e.publish(t, "c1", sharedIssuer, old, fresh)
	e.verifies(t, sharedIssuer, fresh, "c1")
	e.verifies(t, sharedIssuer, old, "c1")
	e.publish(t, "c1", sharedIssuer, old, fresh)
	if moved() {
		t.Error("the generation moved without a key going")
	}
	e.publish(t, "c1", sharedIssuer, fresh)
	e.refuses(t, sharedIssuer, old.ID, denial.UnknownKey)
	if !moved() || e.status(t, "c1").Err != nil {
		t.Errorf("after a key went: %+v", e.status(t, "c1"))
	}

	e.publish(t, "c1", "https://new.example.com", fresh)
	e.refuses(t, sharedIssuer, fresh.ID, denial.UnknownIssuer)
	e.verifies(t, "https://new.example.com", fresh, "c1")
	moved()
	e.Forget("c1")
	e.Forget("c1")
	e.refuses(t, "https://new.example.com", fresh.ID, denial.UnknownIssuer)
	if !moved() || len(e.Status()) != 0 {
		t.Errorf("after the cluster left: %+v", e.Status())
	}
}

// TestUnusableIsNothing: what counts follows from what is published now, as the
// hub's condition has it, and not from what was published before.
func TestUnusableIsNothing(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	good := candidate(t, "c1", sharedIssuer, key)
	for name, data := range map[string]map[string]string{
		"no keys":    {names.IssuerKeyIssuer: sharedIssuer, names.IssuerKeyJWKS: `{"keys":[]}`},
		"nothing":    {},
		"no issuer":  {names.IssuerKeyJWKS: string(issuer.JWKS(t, key)), names.IssuerKeyProofs: good.Data[names.IssuerKeyProofs]},
		"bad issuer": {names.IssuerKeyIssuer: "a b", names.IssuerKeyJWKS: string(issuer.JWKS(t, key))},
		"no proof":   {names.IssuerKeyIssuer: sharedIssuer, names.IssuerKeyJWKS: string(issuer.JWKS(t, key))},
	} {
		e := newEnv(t, everyone())
		e.publish(t, "c1", sharedIssuer, key)
		if err := e.Observe(keytrust.Candidate{Cluster: good.Cluster, Data: data}); err == nil || e.status(t, "c1").Err == nil {
			t.Errorf("%s: %v, and the status says %v", name, err, e.status(t, "c1").Err)
		}
		if _, err := e.Lookup(t.Context(), sharedIssuer, key.ID); err == nil {
			t.Errorf("%s: the key still counts", name)
		}
	}
}

// TestACopiedKeyHarmsNoCluster: a cluster that publishes another's public key, with
// what that one published as proof, changes nothing for it.
func TestACopiedKeyHarmsNoCluster(t *testing.T) {
	t.Parallel()
	key, own := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, everyone())
	e.publish(t, "victim", sharedIssuer, key)
	moved := e.moved("victim")
	thief := candidate(t, "thief", sharedIssuer, own)
	thief.Data[names.IssuerKeyJWKS] = string(issuer.JWKS(t, key, own))
	thief.Data[names.IssuerKeyProofs] += "\n" + candidate(t, "victim", sharedIssuer, key).Data[names.IssuerKeyProofs]
	if err := e.Observe(thief); err != nil {
		t.Error(err)
	}
	e.verifies(t, sharedIssuer, key, "victim")
	e.verifies(t, sharedIssuer, own, "thief")
	if moved() {
		t.Error("the victim's tokens must be verified again")
	}
	if ignored := e.status(t, "thief").Ignored; len(ignored) != 1 {
		t.Errorf("the thief's status: %v", ignored)
	}
}

// TestPublishedByTwo: a key of which two clusters have proven that they sign
// with it counts for neither, their others do.
func TestPublishedByTwo(t *testing.T) {
	t.Parallel()
	shared, one, two := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	renamed := *shared
	renamed.ID = "another id"
	e := newEnv(t, everyone())
	e.publish(t, "c1", sharedIssuer, shared, one)
	moved := e.moved("c1")
	err := e.Observe(candidate(t, "c2", "https://two.example.com", two, &renamed))
	if x, ok := errors.AsType[*jwks.SharedKeyError](err); !ok || !slices.Equal(x.Clusters, []string{"c1", "c2"}) || x.KeyID != renamed.ID {
		t.Errorf("Observe: %v; want an error that names both and the second's key", err)
	}
	if !moved() {
		t.Error("a key that stands for two clusters now leaves the generation")
	}
	e.refuses(t, sharedIssuer, shared.ID, denial.AmbiguousKey)
	e.refuses(t, "https://two.example.com", renamed.ID, denial.AmbiguousKey)
	e.verifies(t, sharedIssuer, one, "c1")
	e.verifies(t, "https://two.example.com", two, "c2")
	for cluster, key := range map[string]*issuer.Key{"c1": one, "c2": two} {
		status := e.status(t, cluster)
		if !slices.Equal(status.KeyIDs, []string{key.ID}) || len(status.Shared) != 1 {
			t.Errorf("status of %s: %+v", cluster, status)
		}
	}
	e.Forget("c2")
	e.verifies(t, sharedIssuer, shared, "c1")
}

// TestConfiguredWins: what an agent publishes takes nothing from a cluster whose
// keys the configuration names.
func TestConfiguredWins(t *testing.T) {
	t.Parallel()
	key, other := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, everyone(), inline(t, "c1", sharedIssuer, key))
	if err := e.Observe(candidate(t, "c2", sharedIssuer, key, other)); err == nil {
		t.Error("the key of another cluster was published")
	}
	e.verifies(t, sharedIssuer, key, "c1")
	e.verifies(t, sharedIssuer, other, "c2")

	if err := e.Observe(candidate(t, "c1", sharedIssuer, other)); err != nil {
		t.Errorf("a cluster with a source of its own publishes: %v", err)
	}
	e.verifies(t, sharedIssuer, other, "c2")
	e.verifies(t, sharedIssuer, key, "c1")
}

// TestAServerTakesNoNamedKey: a cluster whose keys come from an address serves
// another's key under the same issuer. A key that the configuration names, or
// pins, stays with its cluster; one that nothing names counts for neither, so
// that a token never counts as the wrong cluster's.
func TestAServerTakesNoNamedKey(t *testing.T) {
	t.Parallel()
	key, own, pin := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	for _, source := range []func(*issuer.Provider) jwks.Cluster{
		func(p *issuer.Provider) jwks.Cluster { return remote("hostile", sharedIssuer, p) },
		func(p *issuer.Provider) jwks.Cluster {
			p.Describe(sharedIssuer, p.URL+issuer.KeysPath)
			return jwks.Cluster{Name: "hostile", Issuer: sharedIssuer, Source: jwks.Source{Discovery: &jwks.Discovery{URL: p.URL}, CA: p.CA}}
		},
	} {
		hostile := source(issuer.NewProvider(t, key, own, pin))
		pinned := remote("pinned", sharedIssuer, issuer.NewProvider(t, pin))
		pinned.Pins = []string{pin.ID}
		e := start(t, hostile, inline(t, "named", sharedIssuer, key), pinned, everyone())
		e.verifies(t, sharedIssuer, key, "named")
		e.verifies(t, sharedIssuer, pin, "pinned")
		e.verifies(t, sharedIssuer, own, "hostile")

		e.configure(t, hostile, everyone())
		e.verifies(t, sharedIssuer, key, "hostile")
		_ = e.Observe(candidate(t, "published", sharedIssuer, key))
		e.refuses(t, sharedIssuer, key.ID, denial.AmbiguousKey)
		e.verifies(t, sharedIssuer, own, "hostile")
	}
}

func TestWhoMayPublish(t *testing.T) {
	t.Parallel()
	a, b, c := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	one := jwks.Cluster{Name: "c1", Issuer: sharedIssuer, Pins: []string{a.ID}, Source: jwks.Source{Hub: true}}
	e := newEnv(t, one)
	e.publish(t, "c1", sharedIssuer, a, b)
	e.publish(t, "c2", sharedIssuer, c)
	e.verifies(t, sharedIssuer, a, "c1")
	e.refuses(t, sharedIssuer, b.ID, denial.UnknownKey)
	e.refuses(t, sharedIssuer, c.ID, denial.UnknownKey)
	e.configure(t, one, everyone()) // What was published before counts.
	e.verifies(t, sharedIssuer, c, "c2")
	e.refuses(t, sharedIssuer, b.ID, denial.UnknownKey)

	e.publish(t, "c1", "https://elsewhere.example.com", a)
	e.refuses(t, "https://elsewhere.example.com", a.ID, denial.UnknownIssuer)
	if status := e.status(t, "c1"); status.Err == nil || len(status.KeyIDs) != 0 {
		t.Errorf("another issuer than configured: %+v", status)
	}
	e.configure(t)
	e.refuses(t, sharedIssuer, c.ID, denial.UnknownIssuer)
}

// TestDeniedIsDenied: a cluster that the hub denies, detaches or does not have
// has no keys, wherever they come from.
func TestDeniedIsDenied(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	p := issuer.NewProvider(t, key)
	pinned := jwks.Cluster{Name: "c1", Pins: []string{key.ID}, Source: jwks.Source{Hub: true}}
	for name, source := range map[string]jwks.Cluster{
		"inline": inline(t, "c1", sharedIssuer, key), "uri": remote("c1", sharedIssuer, p), "hub": pinned,
	} {
		var gone []string
		e := newEnv(t)
		e.Store = jwks.New(jwks.Config{Hub: true, Clock: e.clock, Gone: func(cluster string) { gone = append(gone, cluster) }})
		e.configure(t, source)
		e.run(t)
		if _, err := e.Lookup(t.Context(), sharedIssuer, key.ID); err == nil {
			t.Errorf("%s: a key counts before the hub was read", name)
		}
		e.HubSynced()
		if _, err := e.Lookup(t.Context(), sharedIssuer, key.ID); err == nil {
			t.Errorf("%s: a key counts of a cluster that the hub does not have", name)
		}
		good := candidate(t, "c1", sharedIssuer, key)
		if name != "hub" {
			good.Data = nil
		}
		for what, change := range map[string]func(*keytrust.Cluster){
			"denied":    func(c *keytrust.Cluster) { c.Accepted = false },
			"detaching": func(c *keytrust.Cluster) { c.Detaching = true },
			"forgotten": nil,
		} {
			if err := e.Observe(good); err != nil {
				t.Fatal(err)
			}
			e.settle(t)
			e.verifies(t, sharedIssuer, key, "c1")
			if change == nil {
				e.Forget("c1")
			} else {
				bad := good // It publishes what it did, or nothing as before.
				change(&bad.Cluster)
				_ = e.Observe(bad)
			}
			e.refuses(t, sharedIssuer, key.ID, denial.UnknownIssuer)
			if status := e.status(t, "c1"); len(status.KeyIDs) != 0 || status.Err == nil {
				t.Errorf("%s, %s: status %+v", name, what, status)
			}
			if len(gone) != 1 {
				t.Errorf("%s, %s: told of %v", name, what, gone)
			}
			gone = nil
		}
	}
}

// TestNothingIsNotEmpty: a cluster that publishes nothing is in order, and one that
// publishes an empty object is not, in whatever order the hub sees both.
func TestNothingIsNotEmpty(t *testing.T) {
	t.Parallel()
	e := newEnv(t, everyone())
	nothing := candidate(t, "c1", sharedIssuer, issuer.NewKey(t, jwk.ES256))
	empty := nothing
	nothing.Data, empty.Data = nil, map[string]string{}
	for range 2 {
		for range 2 {
			if err := e.Observe(nothing); err != nil {
				t.Errorf("nothing: %v", err)
			}
		}
		for range 2 {
			if err := e.Observe(empty); err == nil {
				t.Error("an empty object is in order")
			}
		}
	}
}

// TestNothingBeforeJoining: what an accepted cluster publishes before its agent
// joined counts neither for it nor against another; a configured source counts.
func TestNothingBeforeJoining(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	early := candidate(t, "c1", sharedIssuer, key)
	early.Cluster.Joined = false
	e := newEnv(t, everyone())
	if err := e.Observe(early); err != nil {
		t.Error(err)
	}
	e.refuses(t, sharedIssuer, key.ID, denial.UnknownIssuer)
	e.publish(t, "c2", sharedIssuer, key)
	e.verifies(t, sharedIssuer, key, "c2")
	e.Forget("c2")
	e.publish(t, "c1", sharedIssuer, key)
	e.verifies(t, sharedIssuer, key, "c1")
	if err := e.Observe(early); err != nil {
		t.Error(err)
	}
	e.refuses(t, sharedIssuer, key.ID, denial.UnknownIssuer)

	e = newEnv(t, inline(t, "c1", sharedIssuer, key))
	if err := e.Observe(early); err != nil {
		t.Error(err)
	}
	e.verifies(t, sharedIssuer, key, "c1")
}

// TestHubNotRead: until the hub was read nobody knows who is missing.
func TestHubNotRead(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	named := jwks.Cluster{Name: "c2", Issuer: "https://two.example.com", Source: jwks.Source{Hub: true}}
	e := newEnv(t)
	e.Store = jwks.New(jwks.Config{Hub: true, Clock: e.clock})
	e.configure(t, everyone(), named)
	e.refuses(t, sharedIssuer, key.ID, denial.KeysUnavailable)
	if e.Ready() == nil || e.status(t, "c2").Tried {
		t.Error("ready before the hub was read")
	}
	e.HubSynced()
	e.refuses(t, sharedIssuer, key.ID, denial.UnknownIssuer)
	if err := e.Ready(); err != nil {
		t.Error(err)
	}
	if status := e.status(t, "c2"); !status.Tried || status.Err == nil {
		t.Errorf("a cluster that publishes nothing: %+v", status)
	}
}
