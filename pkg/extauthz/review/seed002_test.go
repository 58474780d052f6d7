package review_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/review"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
)

// TestParseServiceAccountIdentity is the line "TestParseServiceAccountIdentity
// (7 subtests)" of seed 002, "Testing": what is read from the user that a
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

// TestParseServiceAccountIdentityNeedsUID goes beyond the seed, which lets the
// UID be empty.
func TestParseServiceAccountIdentityNeedsUID(t *testing.T) {
	t.Parallel()
	got, err := review.ParseServiceAccountIdentity(authenticationv1.UserInfo{Username: "system:serviceaccount:default:reader"})
	if err == nil {
		t.Errorf("got %+v without a UID", got)
	}
}
