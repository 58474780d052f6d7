package subject_test

import (
	"crypto/elliptic"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// newStore is the real key store with the keys of clusters in its configuration
// (tokensmith's design, "JWKSData").
func newStore(t *testing.T, clusters ...jwks.Cluster) *jwks.Store {
	t.Helper()
	store := jwks.New(jwks.Config{})
	if err := store.Configure(clusters, nil); err != nil {
		t.Fatal(err)
	}
	return store
}

func inline(name, issuer string, keySet []byte) jwks.Cluster {
	return jwks.Cluster{Name: name, Issuer: issuer, Source: jwks.Source{Inline: keySet}}
}

// openForm are the rules of a file of tokensmith's form.
func openForm() *subject.Rules { return &subject.Rules{Open: true, Skew: subject.DefaultSkew} }

// TestJWKSValidator_Validate is the line "TestJWKSValidator_Validate (6
// subtests)" of tokensmith's design, "Testing"; each subtest is a line of its section 7,
// "Test coverage". The tokens are those of real API servers.
func TestJWKSValidator_Validate(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	store := newStore(t, inline("east", issuer, east.KeySet(t)), inline("east-secrets", legacyIssuer, east.KeySet(t)))
	verifier := verifierOf(store, openForm())
	token := w.token(t, ours())

	t.Run("Validate tokens from multiple clusters", func(t *testing.T) {
		t.Parallel()
		validatesMultipleClusters(t)
	})
	t.Run("Match tokens to correct cluster by issuer", func(t *testing.T) {
		t.Parallel()
		for want, token := range map[string]string{"east": token, "east-secrets": w.legacyToken(t)} {
			got, err := verifier.Verify(t.Context(), token)
			if err != nil || got.Cluster != want || got.Account.UID != string(w.account.UID) {
				t.Errorf("a token of %s is taken for %+v: %v", want, got, err)
			}
		}
	})
	t.Run("Reject tokens from unknown issuers", func(t *testing.T) {
		t.Parallel()
		// "Strict issuer matching prevents token misuse": a slash more is another issuer.
		strict := newStore(t, inline("east", issuer+"/", east.KeySet(t)))
		_, err := verifierOf(strict, openForm()).Verify(t.Context(), token)
		wantReason(t, err, denial.UnknownIssuer)
	})
	t.Run("Reject expired tokens", func(t *testing.T) {
		t.Parallel()
		end := subject.Unverified(token).NotAfter
		_, err := subject.NewVerifier(store, always(openForm()), clocktesting.NewFakePassiveClock(end)).Verify(t.Context(), token)
		wantReason(t, err, denial.Expired)
	})
	t.Run("Reject tokens with invalid signatures", func(t *testing.T) {
		t.Parallel()
		parts := strings.Split(token, ".")
		_, err := verifier.Verify(t.Context(), parts[0]+"."+flip(parts[1])+"."+parts[2])
		wantReason(t, err, denial.BadSignature)
		stranger := newForge(t, subject.Unverified(token).KeyID, jwk.RS256)
		_, err = verifier.Verify(t.Context(), stranger.token(t, claimsOf(t, token)))
		wantReason(t, err, denial.BadSignature)
	})
	t.Run("Reject malformed tokens", func(t *testing.T) {
		t.Parallel()
		for _, malformed := range []string{"junk", "a.b", "a.b.c", token + ".x", token[:len(token)/2]} {
			_, err := verifier.Verify(t.Context(), malformed)
			wantReason(t, err, denial.Malformed)
		}
	})
}

// validatesMultipleClusters has two clusters with one and the same issuer, as
// kubeadm and kind make them: who signed tells which one a token is from.
func validatesMultipleClusters(t *testing.T) {
	t.Helper()
	west := controlplane.Start(t, withSigningKey(t, elliptic.P256())...)
	store := newStore(t, inline("east", issuer, east.KeySet(t)), inline("west", issuer, west.KeySet(t)))
	for _, rules := range []*subject.Rules{openForm(), strict()} {
		verifier := verifierOf(store, rules)
		for cluster, cp := range map[string]*controlplane.ControlPlane{"east": east, "west": west.ControlPlane} {
			w := newWorkload(t, cp)
			got, err := verifier.Verify(t.Context(), w.token(t, ours()))
			if err != nil {
				t.Fatalf("a token of %s: %v", cluster, err)
			}
			if got.Cluster != cluster || got.Account.UID != string(w.account.UID) {
				t.Errorf("a token of %s is taken for %+v", cluster, got)
			}
		}
	}
	alone := verifierOf(newStore(t, inline("east", issuer, east.KeySet(t))), strict())
	_, err := alone.Verify(t.Context(), newWorkload(t, west.ControlPlane).token(t, ours()))
	wantReason(t, err, denial.UnknownKey)
}

// TestJWKSValidator_MultipleKeys is the line "TestJWKSValidator_MultipleKeys (2
// subtests)" of tokensmith's design, "Testing": "Handles multiple keys per cluster (for key
// rotation scenarios)". The second key is the next one of a cluster whose
// administrator has published it but does not sign with it yet.
func TestJWKSValidator_MultipleKeys(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	token := w.token(t, ours())
	next := newForge(t, "next", jwk.RS256)
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(east.KeySet(t), &set); err != nil {
		t.Fatal(err)
	}
	set.Keys = append(set.Keys, json.RawMessage(text(t, next.JWK(t))))
	verifier := verifierOf(newStore(t, inline("east", issuer, []byte(text(t, set)))), openForm())
	for name, token := range map[string]string{"first key": token, "second key": next.token(t, claimsOf(t, token))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := verifier.Verify(t.Context(), token)
			if err != nil || got.Cluster != "east" || got.Account.UID != string(w.account.UID) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestExtractServiceAccountIdentity is the line
// "TestExtractServiceAccountIdentity (5 subtests)" of tokensmith's design, "Testing":
// "Extract service account identity from various claim formats". Two are real
// tokens, three lack a claim that its design names.
func TestExtractServiceAccountIdentity(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	secret := w.legacyToken(t)
	h := newHostile(t)
	keys := h.keys.add("east", issuer, keysOf(t, east)...).add("east", legacyIssuer, keysOf(t, east)...)
	verifier := subject.NewVerifier(keys, always(openForm()), clock.RealClock{})
	without := func(claim string) string {
		return h.token(t, claimsOf(t, secret).with(object{"kubernetes.io/serviceaccount/" + claim: nil}))
	}
	for name, tt := range map[string]struct {
		token string
		taken bool
	}{
		"flat claims":    {secret, true},
		"nested claims":  {w.token(t, ours()), true},
		"no namespace":   {without("namespace"), false},
		"no account":     {without("service-account.name"), false},
		"no account UID": {without("service-account.uid"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := verifier.Verify(t.Context(), tt.token)
			if !tt.taken {
				wantReason(t, err, denial.ClaimsMismatch)
				return
			}
			want := subject.Account{Namespace: w.account.Namespace, Name: w.account.Name, UID: string(w.account.UID)}
			if err != nil || got.Account != want {
				t.Errorf("got %+v and %v, want %+v", got, err, want)
			}
		})
	}
}

// TestStandardClaims is the line "Validates standard JWT claims (exp, nbf, iat)"
// of tokensmith's design, section 3, for both forms of claims.
func TestStandardClaims(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	verifier := subject.NewVerifier(h.keys, always(openForm()), h.now())
	hour := int64(time.Hour / time.Second)
	for claim, tt := range map[string]struct {
		at   int64
		want denial.Reason
	}{
		"exp": {h.issued - hour, denial.Expired},
		"nbf": {h.issued + hour, denial.NotYetValid},
		"iat": {h.issued + hour, denial.NotYetValid},
	} {
		_, err := verifier.Verify(t.Context(), h.changed(t, object{claim: tt.at}))
		wantReason(t, err, tt.want)
		_, err = verifier.Verify(t.Context(), h.legacy(t, object{claim: tt.at}))
		wantReason(t, err, tt.want)
	}
}
