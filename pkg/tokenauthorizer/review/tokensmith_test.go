package review_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// TestParseServiceAccountIdentity is the line "TestParseServiceAccountIdentity
// (7 subtests)" of tokensmith's design, "Testing": what is read from the user that a
// TokenReview names.
func TestParseServiceAccountIdentity(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, username, uid string
		want                subject.Account // Empty: an error.
	}{
		{"a service account", "system:serviceaccount:default:reader", "u1", subject.Account{Namespace: "default", Name: "reader", UID: "u1"}},
		{"dashes and dots", "system:serviceaccount:app-prod:eso.sa-1", "u2", subject.Account{Namespace: "app-prod", Name: "eso.sa-1", UID: "u2"}},
		{"a person", "alice@example.com", "u3", subject.Account{}},
		{"another prefix", "system:node:default:reader", "u4", subject.Account{}},
		{"no name", "system:serviceaccount:default", "u5", subject.Account{}},
		{"an empty namespace or name", "system:serviceaccount::", "u6", subject.Account{}},
		{"more parts", "system:serviceaccount:default:reader:extra", "u7", subject.Account{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := review.ParseServiceAccountIdentity(authenticationv1.UserInfo{Username: tt.username, UID: tt.uid})
			if got != tt.want || (err == nil) != (tt.want != subject.Account{}) {
				t.Errorf("got %+v and %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// TestParseServiceAccountIdentityNeedsUID goes beyond tokensmith, which lets the
// UID be empty.
func TestParseServiceAccountIdentityNeedsUID(t *testing.T) {
	t.Parallel()
	got, err := review.ParseServiceAccountIdentity(authenticationv1.UserInfo{Username: "system:serviceaccount:default:reader"})
	if err == nil {
		t.Errorf("got %+v without a UID", got)
	}
}

// TestSameIdentity is the line "Returns same ServiceAccountIdentity struct as
// TokenReview validator" of tokensmith's design, section 3, and "TokenValidator interface
// for both validation methods" of section 4: a Pod's token proves the same both
// ways.
func TestSameIdentity(t *testing.T) {
	t.Parallel()
	type tokenValidator interface {
		Verify(ctx context.Context, token string) (subject.Identity, error)
	}
	store := jwks.New(jwks.Config{})
	if err := store.Configure([]jwks.Cluster{{Name: review.WorkloadCluster, Issuer: apiAudience, Source: jwks.Source{Inline: cp.KeySet(t)}}}, nil); err != nil {
		t.Fatal(err)
	}
	rules := &subject.Rules{Open: true}
	validators := []tokenValidator{
		subject.NewVerifier(store, func(string) *subject.Rules { return rules }, clock.RealClock{}),
		newTokenReview(t),
	}
	secret := token(t, newAccount(t))
	var identities []subject.Identity
	for _, v := range validators {
		id, err := v.Verify(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		identities = append(identities, id)
	}
	if diff := cmp.Diff(identities[0], identities[1]); diff != "" {
		t.Errorf("(-by key +by review):\n%s", diff)
	}
}
