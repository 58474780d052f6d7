package jwks_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// TestLegacy: Secrets' tokens of all clusters have one issuer, for which a
// cluster's keys count only if its entry says so.
func TestLegacy(t *testing.T) {
	t.Parallel()
	one, two, three := issuer.NewKey(t, jwk.RS256), issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.RS256)
	legacy := func(name string, key *issuer.Key) jwks.Cluster {
		c := inline(t, name, "https://"+name+".example.com", key)
		c.Legacy = true
		return c
	}
	e := newEnv(t, legacy("cluster1", one), legacy("cluster2", two), inline(t, "cluster3", sharedIssuer, three))
	e.verifies(t, jwks.LegacyIssuer, one, "cluster1")
	e.verifies(t, "https://cluster1.example.com", one, "cluster1")
	e.verifies(t, jwks.LegacyIssuer, two, "cluster2")
	e.refuses(t, jwks.LegacyIssuer, three.ID, denial.UnknownKey)
	e.refuses(t, "https://cluster2.example.com", one.ID, denial.UnknownKey)

	// The entry changes its mind: the keys under the other issuer go.
	moved := e.moved("cluster1")
	strict := legacy("cluster1", one)
	strict.Legacy = false
	e.configure(t, strict)
	e.refuses(t, jwks.LegacyIssuer, one.ID, denial.UnknownIssuer)
	e.verifies(t, "https://cluster1.example.com", one, "cluster1")
	if !moved() {
		t.Error("keys went and the generation stays")
	}

	// One key for two clusters can be told apart by their issuers, and not by this one.
	e.configure(t, inline(t, "cluster1", "https://cluster1.example.com", one), inline(t, "cluster2", "https://cluster2.example.com", one))
	err := e.Configure([]jwks.Cluster{legacy("cluster1", one), legacy("cluster2", one)}, nil)
	x, ok := errors.AsType[*jwks.SharedKeyError](err)
	if !ok || x.Issuer != jwks.LegacyIssuer || !slices.Equal(x.Clusters, []string{"cluster1", "cluster2"}) {
		t.Errorf("got %v", err)
	}
}
