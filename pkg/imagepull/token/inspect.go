package token

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
)

// Spec is what tokens are requested for, and how they are stored.
type Spec struct {
	// Audience is what the registries expect; empty means the API server's own.
	Audience string
	// TTL is how long tokens are to live; the API server may shorten it.
	TTL time.Duration
	// Username is sent with the token.
	Username string
}

// wanted is what the data of a Secret should be.
type wanted struct {
	Spec

	hosts   []string
	account string // The UID of the ServiceAccount.
	retired func(keyID string) bool
}

// inspect returns what the rules need to know about a Secret.
func inspect(secret *corev1.Secret, want wanted) credential.Facts {
	s := content.Of(secret)
	facts := credential.Facts{Problem: problem(s, secret, want), Validity: s.Validity()}
	facts.RenewAt = credential.RenewAt(facts.Validity, credential.PullSecrets(), string(secret.UID))
	return facts
}

// problem returns what is wrong with a token, or with where it is stored. The
// list of servers comes last: all others make the token useless.
func problem(s content.Summary, secret *corev1.Secret, want wanted) error {
	switch {
	case s.Missing:
		return credential.ErrMissing
	case s.Problem != "":
		return fmt.Errorf("%w: %s", credential.ErrMalformed, s.Problem)
	case s.AccountUID != want.account:
		return fmt.Errorf("%w: it is of another ServiceAccount", credential.ErrWrongIdentity)
	case s.SecretUID != string(secret.UID):
		return fmt.Errorf("%w: it is bound to another Secret", credential.ErrWrongIdentity)
	case want.Audience != "" && !slices.Equal(s.Audiences, []string{want.Audience}):
		return fmt.Errorf("%w: its audiences are %q", credential.ErrWrongIdentity, s.Audiences)
	case want.retired(s.KeyID):
		return fmt.Errorf("%w: %s", credential.ErrSignerRetired, s.KeyID)
	case s.Username != want.Username || !slices.Equal(s.Hosts, want.hosts):
		return fmt.Errorf("%w: as %q for %q", credential.ErrServersChanged, s.Username, s.Hosts)
	}
	return nil
}
