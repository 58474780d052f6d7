package subject_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// fuzzTime is when the tokens of the corpus are good.
const fuzzTime = 1_700_000_000

// example are claims as an API server makes them.
func example() forged {
	return forged{
		"iss": issuer, "aud": []string{audience}, "sub": "system:serviceaccount:app-prod:reader", "jti": "9d6f2c1e",
		"exp": fuzzTime + 3600, "nbf": fuzzTime, "iat": fuzzTime,
		"kubernetes.io": object{
			"namespace": "app-prod", "serviceaccount": object{"name": "reader", "uid": "u1"},
			"pod": object{"name": "p", "uid": "u2"}, "node": object{"name": "n", "uid": "u3"}, "warnafter": fuzzTime + 3607,
		},
	}
}

// fuzzVerifier believes f alone.
func fuzzVerifier(f *forge, rules *subject.Rules) *subject.Verifier {
	keys := new(keyring).add("forged", issuer, f.key()).add("forged", legacyIssuer, f.key())
	return subject.NewVerifier(keys, always(rules), clocktesting.NewFakePassiveClock(time.Unix(fuzzTime+1, 0)))
}

// FuzzVerify gives any text to a verifier. Nobody can sign, so nothing but the
// seeds of the corpus may be taken, and every denial is one for what was sent.
func FuzzVerify(f *testing.F) {
	signer := newForge(f, "key-1", jwk.ES256)
	good := signer.token(f, example())
	parts := strings.Split(good, ".")
	for _, token := range []string{
		good, "", "..", "a.b.c", parts[0] + "." + parts[1] + ".", parts[0] + ".." + parts[2],
		encode([]byte(`{"alg":"none"}`)) + "." + parts[1] + "." + parts[2],
		encode([]byte(`{"alg":"ES256","kid":"key-1","crit":[]}`)) + "." + parts[1] + "." + parts[2],
	} {
		f.Add(token)
	}
	verifier := fuzzVerifier(signer, &subject.Rules{Audiences: []string{audience}, Legacy: true})
	f.Fuzz(func(t *testing.T, token string) {
		got, err := verifier.Verify(t.Context(), token)
		if err == nil {
			if token != good {
				t.Errorf("taken for %+v: %q", got, token)
			}
			return
		}
		if got.Cluster != "" || got.Account != (subject.Account{}) {
			t.Errorf("refused with the identity %+v", got)
		}
		if class := denial.Of(err).Reason.Class(); class != denial.Unauthenticated {
			t.Errorf("refused with class %v: %v", class, err)
		}
		subject.Unverified(token)
	})
}

// FuzzParse signs any payload. What is taken means the same to encoding/json,
// and names an account that its subject agrees with.
func FuzzParse(f *testing.F) {
	signer := newForge(f, "key-1", jwk.ES256)
	for _, claims := range []forged{
		example(),
		example().with(object{"aud": audience}),
		{
			"iss": legacyIssuer, "sub": "system:serviceaccount:app-prod:reader",
			"kubernetes.io/serviceaccount/namespace":            "app-prod",
			"kubernetes.io/serviceaccount/service-account.name": "reader",
			"kubernetes.io/serviceaccount/service-account.uid":  "u1",
		},
	} {
		f.Add(text(f, claims))
	}
	f.Add(`{"iss":"` + issuer + `","iss":"x"}`)
	f.Add(`{"aud":[],"exp":1e400,"kubernetes.io":{"pod":null}}`)
	verifier := fuzzVerifier(signer, &subject.Rules{Audiences: []string{audience}, Legacy: true})
	f.Fuzz(func(t *testing.T, payload string) {
		got, err := verifier.Verify(t.Context(), signer.sign(t, text(t, signer.header()), payload))
		if err != nil {
			return
		}
		var sub, iss string
		var members map[string]json.RawMessage // Maps compare names exactly.
		if err := json.Unmarshal([]byte(payload), &members); err != nil {
			t.Fatalf("taken, but encoding/json says: %v", err)
		}
		for name, into := range map[string]any{"sub": &sub, "iss": &iss} {
			if err := json.Unmarshal(members[name], into); err != nil {
				t.Fatal(err)
			}
		}
		if user := names.ServiceAccountUser(got.Account.Namespace, got.Account.Name); user != sub || got.Token.Issuer != iss {
			t.Errorf("taken for %s of %s, and it says %s of %s", user, got.Token.Issuer, sub, iss)
		}
		if got.Account.UID == "" || !got.Token.Legacy && !slices.Contains(got.Token.Audiences, audience) {
			t.Errorf("taken: %+v", got)
		}
	})
}
