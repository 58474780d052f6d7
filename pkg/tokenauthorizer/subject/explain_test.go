package subject_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// TestExplain tells all checks of a real token, in the order in which they are made.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, east)
	token := w.token(t, authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: toPod(w)})
	verifier := verifierOf(new(keyring).add("east", issuer, keysOf(t, east)...), strict())
	var steps []string
	details := map[string]string{}
	got, err := verifier.Explain(t.Context(), token, func(s subject.Step) {
		steps = append(steps, s.Name)
		details[s.Name] = s.Detail
		if s.Denial != nil || s.Detail == "" {
			t.Errorf("step %+v", s)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"size", "form", "header", "payload", "issuer", "key", "signature", "rules", "form of the claims",
		"end", "begin", "age", "audience", "account", "subject", "binding", "intended end",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for step, part := range map[string]string{
		"key": "east", "signature": "east", "account": w.account.Namespace + "/reader", "audience": audience,
		"binding": "to the Pod " + w.pod.Name, "issuer": issuer, "header": "RS256",
	} {
		if !strings.Contains(details[step], part) {
			t.Errorf("step %s says %q, want %q in it", step, details[step], part)
		}
	}
	again, err := verifier.Verify(t.Context(), token)
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("Verify differs from Explain: %v (-explained +verified):\n%s", err, diff)
	}
}

// TestExplainDenial goes through every hostile token: it ends where Verify
// does, for the same reason.
func TestExplainDenial(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, tt := range slices.Concat(shapes(), headers(), keys(), times(), accounts(), legacies(), opens()) {
		rules := strict()
		if tt.rules != nil {
			tt.rules(rules)
		}
		verifier := subject.NewVerifier(h.keys, always(rules), h.now())
		token := tt.token(t, h)
		verified, want := verifier.Verify(t.Context(), token)
		var denied *denial.Error
		explained, err := verifier.Explain(t.Context(), token, func(s subject.Step) {
			if denied != nil {
				t.Errorf("%s: step %s follows a denied", tt.name, s.Name)
			}
			denied = s.Denial
		})
		if diff := cmp.Diff(verified, explained); diff != "" {
			t.Errorf("%s: (-verified +explained):\n%s", tt.name, diff)
		}
		if (denied == nil) != (err == nil) || (err == nil) != (want == nil) || (err != nil && err.Error() != want.Error()) {
			t.Errorf("%s: explained %v, and %v in the last step, want %v", tt.name, err, denied, want)
		}
	}
}

// TestTimesAheadAreReported: what is still to come is so many seconds ahead, whether it
// is the end of a token that is taken or the beginning of one that is not yet.
func TestTimesAheadAreReported(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for name, tt := range map[string]struct {
		token      string
		step, says string
	}{
		"its end":          {token: after(map[string]int64{"exp": 61})(t, h), step: "end", says: ", in 1m0s"},
		"its intended end": {token: warned(61)(t, h), step: "intended end", says: ", in 1m0s"},
		"its beginning":    {token: after(map[string]int64{"nbf": 61})(t, h), step: "begin", says: ", in 1m0s;"},
		"its issue":        {token: after(map[string]int64{"iat": 61})(t, h), step: "begin", says: ", in 1m0s from now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verifier := subject.NewVerifier(h.keys, always(strict()), h.now())
			told := ""
			_, _ = verifier.Explain(t.Context(), tt.token, func(s subject.Step) {
				if s.Name != tt.step {
					return
				}
				if told = s.Detail; s.Denial != nil {
					told = s.Denial.Error()
				}
			})
			if !strings.Contains(told, tt.says) {
				t.Errorf("the step says %q, want %q in it", told, tt.says)
			}
		})
	}
	rules := strict()
	rules.MaxAge = 0
	_, _ = subject.NewVerifier(h.keys, always(rules), h.now()).Explain(t.Context(), after(nil)(t, h), func(s subject.Step) {
		if s.Name == "age" && s.Detail != "not limited" {
			t.Errorf("without a limit of age the step says %q", s.Detail)
		}
	})
}
