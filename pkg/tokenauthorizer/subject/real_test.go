package subject_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// TestVerifyReal verifies what an API server issues, under the rules of a
// cluster with a policy unless a case has others.
func TestVerifyReal(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	keys := new(keyring).add("east", issuer, keysOf(t, east)...).add("east", legacyIssuer, keysOf(t, east)...)
	pod := subject.Binding{
		Pod:  subject.Object{Name: w.pod.Name, UID: string(w.pod.UID)},
		Node: subject.Object{Name: w.node.Name, UID: string(w.node.UID)},
	}
	open := func(r *subject.Rules) { *r = subject.Rules{Open: true, Skew: subject.DefaultSkew} }
	tests := []struct {
		name   string
		spec   authenticationv1.TokenRequestSpec
		legacy bool
		rules  func(*subject.Rules)
		want   denial.Reason // Empty: it is taken.
		bound  subject.Binding
	}{
		{name: "a token for our audience is taken", spec: ours()},
		{name: "one for several audiences is taken", spec: authenticationv1.TokenRequestSpec{Audiences: []string{"https://other.example.com", audience}}},
		{name: "one bound to a Pod is taken", spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toPod(w)}, bound: pod},
		{
			name: "one bound to a Secret is taken", spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toSecret(w)},
			bound: subject.Binding{Secret: subject.Object{Name: w.secret.Name, UID: string(w.secret.UID)}},
		},
		{
			name: "a cluster that demands a Pod takes a token bound to one", rules: func(r *subject.Rules) { r.RequirePod = true },
			spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toPod(w)}, bound: pod,
		},
		{name: "and no other", rules: func(r *subject.Rules) { r.RequirePod = true }, spec: ours(), want: denial.NotBound},
		{
			name: "nor one bound to a Secret", rules: func(r *subject.Rules) { r.RequirePod = true },
			spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toSecret(w)}, want: denial.NotBound,
		},
		{name: "one for another audience is refused", spec: authenticationv1.TokenRequestSpec{Audiences: []string{"https://other.example.com"}}, want: denial.WrongAudience},
		{name: "one for the API server is refused", want: denial.WrongAudience},
		{name: "without an audience of our own nothing is taken", rules: func(r *subject.Rules) { r.Audiences = nil }, spec: ours(), want: denial.WrongAudience},
		{
			name: "one that the API server extended to a year is taken", bound: pod,
			rules: func(r *subject.Rules) { r.Audiences = []string{issuer}; r.MaxAge = 0 },
			spec:  authenticationv1.TokenRequestSpec{BoundObjectRef: toPod(w), ExpirationSeconds: ptr.To[int64](3607)},
		},
		{name: "a file in tokensmith's form takes a token for any audience", rules: open},
		{name: "and one for a named audience", rules: open, spec: ours()},
		{name: "and one bound to a Pod", rules: open, spec: authenticationv1.TokenRequestSpec{BoundObjectRef: toPod(w)}, bound: pod},
		{name: "a Secret's token is refused", legacy: true, want: denial.LegacyToken},
		{name: "a Secret's token is taken where that is allowed", legacy: true, rules: func(r *subject.Rules) { r.Legacy = true }, bound: subject.Binding{Secret: subject.Object{Name: "legacy"}}},
		{name: "a Secret's token is taken by a file in tokensmith's form", legacy: true, rules: open, bound: subject.Binding{Secret: subject.Object{Name: "legacy"}}},
	}
	legacy := w.legacyToken(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rules := strict()
			if tt.rules != nil {
				tt.rules(rules)
			}
			token := legacy
			if !tt.legacy {
				token = w.token(t, tt.spec)
			}
			got, err := verifierOf(keys, rules).Verify(t.Context(), token)
			if tt.want != "" {
				wantReason(t, err, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkIdentity(t, got, w, tt.bound)
			if got.Token.Legacy != tt.legacy {
				t.Errorf("legacy is %v", got.Token.Legacy)
			}
		})
	}
}

// checkIdentity compares an identity with the objects that the API server has.
func checkIdentity(t *testing.T, got subject.Identity, w *workload, bound subject.Binding) {
	t.Helper()
	account := subject.Account{Namespace: w.account.Namespace, Name: w.account.Name, UID: string(w.account.UID)}
	if got.Cluster != "east" || got.Account != account || got.Bound != bound {
		t.Errorf("got %+v, want the account %+v of east bound to %+v", got, account, bound)
	}
	switch {
	case got.Token.KeyID == "":
		t.Error("the identity lacks the key id")
	case got.Token.Legacy && (got.Token.Issuer != legacyIssuer || !got.Token.NotAfter.IsZero()):
		t.Errorf("a Secret's token is of %q and ends at %v", got.Token.Issuer, got.Token.NotAfter)
	case !got.Token.Legacy && (got.Token.Issuer != issuer || got.Token.ID == "" || got.Token.IssuedAt.IsZero()):
		t.Errorf("incomplete: %+v", got.Token)
	}
}

// TestExtendedToken shows that the year that an API server adds does not count.
func TestExtendedToken(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	token := w.token(t, authenticationv1.TokenRequestSpec{BoundObjectRef: toPod(w), ExpirationSeconds: ptr.To[int64](3607)})
	var claims struct{ Exp, Iat int64 }
	if err := json.Unmarshal([]byte(text(t, claimsOf(t, token))), &claims); err != nil {
		t.Fatal(err)
	}
	if life := claims.Exp - claims.Iat; life < 364*24*3600 {
		t.Fatalf("the token lives for %d s: this test needs one that was extended to a year", life)
	}
	keys := new(keyring).add("east", issuer, keysOf(t, east)...)
	rules := &subject.Rules{Audiences: []string{issuer}}
	got, err := subject.NewVerifier(keys, always(rules), clock.RealClock{}).Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if life := got.Token.NotAfter.Sub(got.Token.IssuedAt).Seconds(); life != 3607 {
		t.Errorf("taken for %v s, want the 3607 s that were asked for", life)
	}
}

// withSigningKey has the API server sign tokens with a new EC key. The
// controller manager's own key goes on to be known, for its own tokens.
func withSigningKey(t *testing.T, curve elliptic.Curve) []controlplane.Option {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sa.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return slices.Clip([]controlplane.Option{controlplane.WithAPIServerArgs(
		"--service-account-key-file="+file, "--service-account-signing-key-file="+file)})
}

// TestLegacyCluster has one entry for both kinds of a cluster's tokens, whose
// issuers differ.
func TestLegacyCluster(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	cluster := inline("east", issuer, east.KeySet(t))
	legacy := w.legacyToken(t)
	_, err := verifierOf(newStore(t, cluster), strict()).Verify(t.Context(), legacy)
	wantReason(t, err, denial.LegacyToken)

	cluster.Legacy = true
	rules := strict()
	rules.Legacy = true
	verifier := verifierOf(newStore(t, cluster), rules)
	for kind, token := range map[string]string{"a Secret's token": legacy, "a bound token": w.token(t, ours())} {
		got, err := verifier.Verify(t.Context(), token)
		if err != nil || got.Cluster != "east" || got.Account.UID != string(w.account.UID) {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
}
