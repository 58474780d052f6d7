package authorizer_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/tokenexchange/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/authorizer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/denial"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/policy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// The first four lines of tokensmith's section "Testing", in which tokens and
// API servers are real.

// TestTokenExchangeFlow is tokensmith's test of that name: steps 1 to 8 of its
// "Token Validation Flow", under its third objective (the same namespace).
func TestTokenExchangeFlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Lease(t))
	flow(t, w, "c1")
	// The fifth objective: the way with --workload-kubeconfig goes on.
	verifier, err := review.NewTokenReview(w.managed.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	w.use(t, review.WorkloadCluster, verifier, 1)
	flow(t, w, review.WorkloadCluster)
}

// flow exchanges a token twice.
func flow(t *testing.T, w *world, cluster string) {
	t.Helper()
	before := len(w.requests.About(""))
	request := authorizer.Request{Token: w.token(t)}
	for i, cached := range []bool{false, true} {
		d, err := w.Authorize(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if d.Identity.Cluster != cluster || d.Identity.Account.Namespace != w.namespace || d.Identity.Account.Name != "reader" {
			t.Errorf("proven: %+v", d.Identity)
		}
		if user := whoAmI(t, d.Token); user.Username != names.ServiceAccountUser(w.namespace, "reader") {
			t.Errorf("the hub says %s", user.Username)
		}
		if d.Cached != cached {
			t.Errorf("request %d: cached %v", i, d.Cached)
		}
	}
	if n := len(w.requests.About("")) - before; n != 1 {
		t.Errorf("%d TokenRequests", n)
	}
}

// TestTokenExchangeServiceAccountNotFound is tokensmith's test of that name: the
// hub has no ServiceAccount of that name. We answer 403, and say so.
func TestTokenExchangeServiceAccountNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hub, v1alpha1.Rule{
		Namespaces: []string{"app-*"}, MapTo: v1alpha1.Mapping{Namespace: "{namespace}", Name: "unknown"},
	})
	_, err := w.Authorize(t.Context(), authorizer.Request{Token: w.token(t)})
	refused := denial.Of(err)
	if err == nil || refused.Reason != denial.TargetMissing || refused.Reason.Class() != denial.Forbidden {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(refused.Detail, w.namespace+"/unknown") {
		t.Errorf("the detail does not name it: %s", refused.Detail)
	}
}

// TestTokenValidationFails is tokensmith's test of that name: a token that does
// not hold never reaches the hub.
func TestTokenValidationFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hub)
	good := w.token(t)
	parts := strings.Split(good, ".")
	for name, tc := range map[string]struct {
		token string
		rules *subject.Rules
		want  denial.Reason
	}{
		"none":                {want: denial.MissingToken},
		"not a token":         {token: "abc", want: denial.Malformed},
		"a forged signature":  {token: parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), want: denial.BadSignature},
		"another payload":     {token: parts[0] + "." + payload(t, good, "sub", "system:serviceaccount:kube-system:admin") + "." + parts[2], want: denial.BadSignature},
		"an unknown issuer":   {token: parts[0] + "." + payload(t, good, "iss", "https://evil.example.com") + "." + parts[2], want: denial.UnknownIssuer},
		"for another service": {token: good, rules: &subject.Rules{Audiences: []string{audience}, MaxAge: time.Hour, Skew: time.Second}, want: denial.WrongAudience},
	} {
		w.configure(t, 1, &subject.Rules{Open: true, Skew: subject.DefaultSkew})
		if tc.rules != nil {
			w.configure(t, 1, tc.rules)
		}
		d, err := w.Authorize(t.Context(), authorizer.Request{Token: tc.token})
		refused := denial.Of(err)
		if err == nil || refused.Reason != tc.want || refused.Reason.Class() != denial.Unauthenticated || d.Token.Value != "" {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
	if n := len(w.requests.About("")); n != 0 {
		t.Errorf("%d TokenRequests", n)
	}
}

// payload returns the payload of a token with a claim of another value.
func payload(t *testing.T, token, claim, value string) string {
	t.Helper()
	claims := map[string]any{}
	if err := jwk.UnverifiedClaims(token, &claims); err != nil {
		t.Fatal(err)
	}
	claims[claim] = value
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestTokenExpirationPreserved is tokensmith's test of that name: the end of the
// issued token is the hub's word, and the same for every request that gets it.
func TestTokenExpirationPreserved(t *testing.T) {
	t.Parallel()
	const life = 20 * 60
	w := newWorld(t, hub, v1alpha1.Rule{
		Namespaces: []string{"app-*"}, MapTo: policy.Same(), Target: &v1alpha1.Target{ExpirationSeconds: life},
	})
	request := authorizer.Request{Token: w.token(t)}
	var ends []time.Time
	for range 3 {
		d, err := w.Authorize(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, d.Token.Expires)
		var claims struct {
			Exp int64 `json:"exp"`
			Iat int64 `json:"iat"`
		}
		if err := jwk.UnverifiedClaims(d.Token.Value, &claims); err != nil {
			t.Fatal(err)
		}
		if claims.Exp != d.Token.Expires.Unix() || claims.Exp-claims.Iat != life {
			t.Errorf("the token ends at %d after %d s, we say %v", claims.Exp, claims.Exp-claims.Iat, d.Token.Expires)
		}
	}
	if !ends[1].Equal(ends[0]) || !ends[2].Equal(ends[0]) {
		t.Errorf("the ends differ: %v", ends)
	}
}
