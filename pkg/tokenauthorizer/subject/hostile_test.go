package subject_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// hostile makes tokens that look like real ones: their claims are those of a
// token that an API server issued, changed and signed with another key, which
// the key store has for the cluster "forged".
type hostile struct {
	*forge

	claims forged
	// issued is the "iat" of the claims.
	issued int64
	keys   *keyring
}

func newHostile(tb testing.TB) *hostile {
	tb.Helper()
	w := newWorkload(tb, east)
	issued := w.token(tb, authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toPod(w)})
	h := &hostile{forge: newForge(tb, "key-1", jwk.RS256), claims: claimsOf(tb, issued)}
	h.issued = subject.Unverified(issued).IssuedAt.Unix()
	h.keys = new(keyring).add("forged", issuer, h.key()).add("forged", legacyIssuer, h.key())
	return h
}

// now is a second after the token was issued.
func (h *hostile) now() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Unix(h.issued+1, 0))
}

// changed signs the claims with changes.
func (h *hostile) changed(tb testing.TB, changes object) string {
	tb.Helper()
	return h.token(tb, h.claims.with(changes))
}

// nested signs the claims with changes to the claim kubernetes.io.
func (h *hostile) nested(tb testing.TB, changes object) string {
	tb.Helper()
	inner, ok := h.claims["kubernetes.io"].(object)
	if !ok {
		tb.Fatal("the claims have no kubernetes.io")
	}
	return h.changed(tb, object{"kubernetes.io": forged(inner).with(changes)})
}

// headed signs the claims under a header with changes.
func (h *hostile) headed(tb testing.TB, changes object) string {
	tb.Helper()
	return h.sign(tb, text(tb, h.header().with(changes)), text(tb, h.claims))
}

// raw signs the claims as text, with more put in before the first.
func (h *hostile) raw(tb testing.TB, more string) string {
	tb.Helper()
	return h.sign(tb, text(tb, h.header()), "{"+more+","+strings.TrimPrefix(text(tb, h.claims), "{"))
}

// flat are the claims of a Secret's token about the same account.
func (h *hostile) flat(tb testing.TB) object {
	tb.Helper()
	user, ok := h.claims["sub"].(string)
	if !ok {
		tb.Fatal("the claims have no sub")
	}
	parts := strings.Split(user, ":")
	return object{
		"kubernetes.io/serviceaccount/namespace":            parts[2],
		"kubernetes.io/serviceaccount/service-account.name": parts[3],
		"kubernetes.io/serviceaccount/service-account.uid":  "5e1fb0c5-0000-4000-8000-000000000000",
		"kubernetes.io/serviceaccount/secret.name":          "legacy",
	}
}

// legacy is a Secret's token with changes.
func (h *hostile) legacy(tb testing.TB, changes object) string {
	tb.Helper()
	claims := forged{"iss": legacyIssuer, "sub": h.claims["sub"]}
	return h.token(tb, claims.with(h.flat(tb)).with(changes))
}

type hostileCase struct {
	name  string
	token func(testing.TB, *hostile) string
	rules func(*subject.Rules)
	want  denial.Reason // Empty: it is taken.
}

func changed(changes object) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.changed(tb, changes) }
}

func nested(changes object) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.nested(tb, changes) }
}

func headed(changes object) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.headed(tb, changes) }
}

func raw(more string) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.raw(tb, more) }
}

func legacy(changes object) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string { tb.Helper(); return h.legacy(tb, changes) }
}

// after signs claims whose times are seconds after the token was issued.
func after(seconds map[string]int64) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string {
		tb.Helper()
		changes := object{}
		for name, s := range seconds {
			changes[name] = h.issued + s
		}
		return h.changed(tb, changes)
	}
}

// edited changes the text of a good token.
func edited(edit func(header, payload, signature string) string) func(testing.TB, *hostile) string {
	return func(tb testing.TB, h *hostile) string {
		tb.Helper()
		parts := strings.Split(h.changed(tb, nil), ".")
		return edit(parts[0], parts[1], parts[2])
	}
}

// TestHostileTokens is a table of tokens that somebody else than the issuer made, or
// changed.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, tt := range slices.Concat(shapes(), headers(), keys(), times(), accounts(), legacies(), opens()) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rules := strict()
			if tt.rules != nil {
				tt.rules(rules)
			}
			verifier := subject.NewVerifier(h.keys, always(rules), h.now())
			token := tt.token(t, h)
			got, err := verifier.Verify(t.Context(), token)
			if tt.want == "" {
				if err != nil || got.Cluster != "forged" || got.Account.Name == "" {
					t.Errorf("got %+v, %v; want it taken", got, err)
				}
				return
			}
			wantReason(t, err, tt.want)
			if got.Account != (subject.Account{}) && tt.want != denial.NotBound && tt.want != denial.Expired {
				t.Errorf("a refused token has the account %+v", got.Account)
			}
			for part := range strings.SplitSeq(token, ".") {
				if len(part) > 16 && strings.Contains(err.Error(), part) {
					t.Errorf("the denied holds a part of the token: %v", err)
				}
			}
			if again, err := verifier.Verify(t.Context(), token); err == nil {
				t.Errorf("at the second look it is %+v", again)
			}
		})
	}
}
