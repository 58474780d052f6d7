package jwks_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

func everyone() jwks.Cluster {
	return jwks.Cluster{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}
}

func (e *env) publish(t *testing.T, cluster, iss string, keys ...*issuer.Key) {
	t.Helper()
	if err := e.Publish(cluster, iss, issuer.JWKS(t, keys...)); err != nil {
		t.Fatal(err)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	old, fresh := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, everyone())
	e.refuses(t, sharedIssuer, old.ID, verdict.UnknownIssuer)
	e.publish(t, "c1", sharedIssuer, old)
	e.verifies(t, sharedIssuer, old, "c1")
	e.publish(t, "c1", sharedIssuer, old, fresh)
	e.verifies(t, sharedIssuer, fresh, "c1")
	e.verifies(t, sharedIssuer, old, "c1")

	generation := e.Generation()
	e.publish(t, "c1", sharedIssuer, old, fresh)
	for _, bad := range []struct{ iss, keys string }{
		{sharedIssuer, `{"keys":[]}`}, {sharedIssuer, ""}, {"", string(issuer.JWKS(t, old))}, {"a b", string(issuer.JWKS(t, old))},
	} {
		if err := e.Publish("c1", bad.iss, []byte(bad.keys)); err == nil {
			t.Errorf("%+v was published", bad)
		}
		if e.status(t, "c1").Err == nil {
			t.Error("no error is shown")
		}
	}
	e.verifies(t, sharedIssuer, fresh, "c1")
	if e.Generation() != generation {
		t.Error("the generation moved without a key going")
	}
	e.publish(t, "c1", sharedIssuer, fresh)
	e.refuses(t, sharedIssuer, old.ID, verdict.UnknownKey)
	if e.Generation() == generation || e.status(t, "c1").Err != nil {
		t.Errorf("after a key went: generation %d, status %+v", e.Generation(), e.status(t, "c1"))
	}

	e.publish(t, "c1", "https://new.example.com", fresh)
	e.refuses(t, sharedIssuer, fresh.ID, verdict.UnknownIssuer)
	e.verifies(t, "https://new.example.com", fresh, "c1")
	generation = e.Generation()
	e.Withdraw("c1")
	e.Withdraw("c1")
	e.refuses(t, "https://new.example.com", fresh.ID, verdict.UnknownIssuer)
	if e.Generation() != generation+1 || len(e.Status()) != 0 {
		t.Errorf("after the cluster left: generation %d, want %d; status %+v", e.Generation(), generation+1, e.Status())
	}
}

// TestPublishedByTwo: neither is believed with the key that both have, both are
// with their others.
func TestPublishedByTwo(t *testing.T) {
	t.Parallel()
	shared, one, two := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	renamed := *shared
	renamed.ID = "another id"
	e := newEnv(t, everyone())
	e.publish(t, "c1", sharedIssuer, shared, one)
	generation := e.Generation()
	err := e.Publish("c2", "https://two.example.com", issuer.JWKS(t, two, &renamed))
	if x, ok := errors.AsType[*jwks.SharedKeyError](err); !ok || !slices.Equal(x.Clusters, []string{"c1", "c2"}) || x.KeyID != renamed.ID {
		t.Errorf("Publish: %v; want an error that names both and the second's key", err)
	}
	if e.Generation() == generation {
		t.Error("a key that stands for two clusters now leaves the generation")
	}
	e.refuses(t, sharedIssuer, shared.ID, verdict.AmbiguousKey)
	e.refuses(t, "https://two.example.com", renamed.ID, verdict.AmbiguousKey)
	e.verifies(t, sharedIssuer, one, "c1")
	e.verifies(t, "https://two.example.com", two, "c2")
	for cluster, key := range map[string]*issuer.Key{"c1": one, "c2": two} {
		status := e.status(t, cluster)
		if !slices.Equal(status.KeyIDs, []string{key.ID}) || len(status.Shared) != 1 {
			t.Errorf("status of %s: %+v", cluster, status)
		}
	}
	e.Withdraw("c2")
	e.verifies(t, sharedIssuer, shared, "c1")
}

// TestConfiguredWins: what an agent publishes takes nothing from a cluster that
// an administrator configured.
func TestConfiguredWins(t *testing.T) {
	t.Parallel()
	key, other := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	e := newEnv(t, everyone(), inline(t, "c1", sharedIssuer, key))
	if err := e.Publish("c2", sharedIssuer, issuer.JWKS(t, key, other)); err == nil {
		t.Error("the key of another cluster was published")
	}
	e.verifies(t, sharedIssuer, key, "c1")
	e.verifies(t, sharedIssuer, other, "c2")

	if err := e.Publish("c1", sharedIssuer, issuer.JWKS(t, other)); err != nil {
		t.Errorf("a cluster with a source of its own publishes: %v", err)
	}
	e.verifies(t, sharedIssuer, other, "c2")
	e.verifies(t, sharedIssuer, key, "c1")
}

func TestWhoMayPublish(t *testing.T) {
	t.Parallel()
	a, b, c := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	one := jwks.Cluster{Name: "c1", Issuer: sharedIssuer, Pins: []string{a.ID}, Source: jwks.Source{Hub: true}}
	e := newEnv(t, one)
	e.publish(t, "c1", sharedIssuer, a, b)
	e.publish(t, "c2", sharedIssuer, c)
	e.verifies(t, sharedIssuer, a, "c1")
	e.refuses(t, sharedIssuer, b.ID, verdict.UnknownKey)
	e.refuses(t, sharedIssuer, c.ID, verdict.UnknownKey)
	e.configure(t, one, everyone()) // What was published before counts.
	e.verifies(t, sharedIssuer, c, "c2")
	e.refuses(t, sharedIssuer, b.ID, verdict.UnknownKey)

	e.publish(t, "c1", "https://elsewhere.example.com", a)
	e.refuses(t, "https://elsewhere.example.com", a.ID, verdict.UnknownIssuer)
	if status := e.status(t, "c1"); status.Err == nil || len(status.KeyIDs) != 0 {
		t.Errorf("another issuer than configured: %+v", status)
	}
	e.configure(t)
	e.refuses(t, sharedIssuer, c.ID, verdict.UnknownIssuer)
}

// TestHubNotRead: until the hub was read nobody knows who is missing.
func TestHubNotRead(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	named := jwks.Cluster{Name: "c2", Issuer: "https://two.example.com", Source: jwks.Source{Hub: true}}
	e := newEnv(t)
	e.Store = jwks.New(jwks.Config{Hub: true, Clock: e.clock})
	e.configure(t, everyone(), named)
	e.refuses(t, sharedIssuer, key.ID, verdict.KeysUnavailable)
	if e.Ready() == nil || e.status(t, "c2").Tried {
		t.Error("ready before the hub was read")
	}
	e.HubSynced()
	e.refuses(t, sharedIssuer, key.ID, verdict.UnknownIssuer)
	if err := e.Ready(); err != nil {
		t.Error(err)
	}
	if status := e.status(t, "c2"); !status.Tried || status.Err == nil {
		t.Errorf("a cluster that publishes nothing: %+v", status)
	}
}
