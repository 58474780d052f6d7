package subject_test

import (
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// TestSameUID has two clusters whose accounts claim one and the same UID: the
// identities differ in the cluster.
func TestSameUID(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	other := newForge(t, "key-2", jwk.RS256)
	h.keys.add("other", issuer, other.key())
	verifier := subject.NewVerifier(h.keys, always(strict()), h.now())
	first, err := verifier.Verify(t.Context(), h.token(t, h.claims))
	if err != nil {
		t.Fatal(err)
	}
	second, err := verifier.Verify(t.Context(), other.token(t, h.claims))
	if err != nil {
		t.Fatal(err)
	}
	if first.Account != second.Account || first.Cluster != "forged" || second.Cluster != "other" {
		t.Errorf("got %+v and %+v", first, second)
	}
}

// TestSharedKeyID has two clusters with one issuer and one key id for different
// keys, and then for one key.
func TestSharedKeyID(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	other := newForge(t, h.ID, jwk.RS256)
	h.keys.add("other", issuer, other.key())
	verifier := subject.NewVerifier(h.keys, always(strict()), h.now())
	for cluster, f := range map[string]*forge{"forged": h.forge, "other": other} {
		got, err := verifier.Verify(t.Context(), f.token(t, h.claims))
		if err != nil || got.Cluster != cluster {
			t.Errorf("a token of %s is taken for %s: %v", cluster, got.Cluster, err)
		}
	}
	h.keys.add("thief", issuer, h.key())
	_, err := verifier.Verify(t.Context(), h.token(t, h.claims.with(object{"jti": "new"})))
	wantReason(t, err, denial.AmbiguousKey)
	if err != nil && (!strings.Contains(err.Error(), "forged") || !strings.Contains(err.Error(), "thief")) {
		t.Errorf("%v does not name both clusters", err)
	}
}

// TestAProofOpensNothing: what a cluster publishes as proof of a key is refused,
// also where no audience is demanded or it has ours as well.
func TestAProofOpensNothing(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	proof := names.IssuerProofAudience("c1", "uid")
	for _, rules := range []*subject.Rules{strict(), {Open: true}, {Audiences: []string{proof}}} {
		for _, audiences := range [][]string{{proof}, {audience, proof}} {
			_, err := subject.NewVerifier(h.keys, always(rules), h.now()).Verify(t.Context(), h.changed(t, object{"aud": audiences}))
			wantReason(t, err, denial.WrongAudience)
		}
	}
}

// TestCurves has a key on every curve, and an algorithm that fits another.
func TestCurves(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, algorithm := range []string{jwk.ES256, jwk.ES384, jwk.ES512} {
		f := newForge(t, algorithm, algorithm)
		h.keys.add("forged", issuer, f.key())
		verifier := subject.NewVerifier(h.keys, always(strict()), h.now())
		if _, err := verifier.Verify(t.Context(), f.token(t, h.claims)); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		for _, wrong := range []string{jwk.RS256, jwk.ES256, jwk.ES384, jwk.ES512} {
			if wrong == algorithm {
				continue
			}
			_, err := verifier.Verify(t.Context(), f.sign(t, text(t, f.header().with(object{"alg": wrong})), text(t, h.claims)))
			wantReason(t, err, denial.BadSignature)
		}
	}
}
