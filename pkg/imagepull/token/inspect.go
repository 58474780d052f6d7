package token

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/content"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull/internal/request"
)

// Spec is how tokens are requested and stored.
type Spec struct {
	// TTL is how long tokens are to live; the API server may shorten it.
	TTL time.Duration
	// Username is sent with the token.
	Username string
	// Format is how they are stored, where the type of the Secret leaves a choice.
	Format content.Format
}

// wanted is the desired data of a Secret.
type wanted struct {
	Spec

	hosts   []content.Host
	account string // The UID of the ServiceAccount.
	retired func(keyID string) bool
}

// inspect returns what the rules need to know about a Secret.
func inspect(secret *corev1.Secret, want wanted) credential.Facts {
	s := content.Of(secret)
	facts := credential.Facts{Problem: want.problem(s, secret), Validity: s.Validity()}
	if facts.Problem == nil {
		facts.Problem = request.Pending(secret, s)
	}
	facts.RenewAt = credential.RenewAt(facts.Validity, credential.PullSecrets(), string(secret.UID))
	return facts
}

// problem returns the problem of the tokens or of their storage. The list of servers is
// checked last: all other problems make a token useless.
func (w wanted) problem(s content.Summary, secret *corev1.Secret) error {
	switch {
	case s.Problem != "":
		return fmt.Errorf("%w: %s", credential.ErrMalformed, s.Problem)
	case s.Missing():
		return credential.ErrMissing
	}
	identity := func(t content.Token) error { return w.identity(t, secret) }
	for _, check := range []func(content.Token) error{identity, w.signer} {
		for _, t := range s.Tokens {
			if err := check(t); err != nil {
				return err
			}
		}
	}
	return w.servers(s, w.Format.In(secret.Type))
}

// identity checks a token's subject and its binding.
func (w wanted) identity(t content.Token, secret *corev1.Secret) error {
	switch {
	case t.AccountUID != w.account:
		return fmt.Errorf("%w: the token is of another ServiceAccount", credential.ErrWrongIdentity)
	case t.SecretUID != string(secret.UID):
		return fmt.Errorf("%w: the token is bound to another Secret", credential.ErrWrongIdentity)
	}
	audience := w.audience(t)
	for _, host := range w.hosts {
		if host.Audience != audience && slices.Contains(t.Hosts, host.Name) {
			return fmt.Errorf("%w: the token has the audiences %q, but %s expects %q", credential.ErrWrongIdentity, t.Audiences, host.Name, host.Audience)
		}
	}
	return nil
}

// audience returns the registries' audience in a token. It is empty for a token without
// any of them: the API server's own audience is not known.
func (w wanted) audience(t content.Token) string {
	for _, host := range w.hosts {
		if slices.Equal(t.Audiences, []string{host.Audience}) {
			return host.Audience
		}
	}
	return ""
}

func (w wanted) signer(t content.Token) error {
	if w.retired(t.KeyID) {
		return fmt.Errorf("%w: %s", credential.ErrSignerRetired, t.KeyID)
	}
	return nil
}

// servers checks for which hosts there are tokens, and how they are stored.
func (w wanted) servers(s content.Summary, format content.Format) error {
	if s.Format != format {
		return fmt.Errorf("%w: in the format %s", credential.ErrServersChanged, s.Format)
	}
	names := make([]string, len(w.hosts))
	for i, host := range w.hosts {
		names[i] = host.Name
	}
	for _, t := range s.Tokens {
		if t.Username != w.Username {
			return fmt.Errorf("%w: as %q", credential.ErrServersChanged, t.Username)
		}
	}
	if hosts := s.Hosts(); !slices.Equal(hosts, names) {
		return fmt.Errorf("%w: for %q", credential.ErrServersChanged, hosts)
	}
	return nil
}
