package bootstrap

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Token is a bootstrap token and what it states about itself. Nothing of that is
// verified: it serves better messages only.
type Token struct {
	secret string
	// ID names the token in the hub's list; empty when it says none.
	ID string
	// User is who the hub takes its bearer for.
	User string
	// Expires is when the hub stops accepting it; zero when it does not say so.
	Expires time.Time
}

// Secret returns the token itself.
func (t Token) Secret() string { return t.secret }

// String keeps the token out of logs and messages.
func (t Token) String() string { return "token " + t.ID }

// GoString keeps the token out of %#v.
func (t Token) GoString() string { return t.String() }

// bootstrapToken is the form of Kubernetes bootstrap tokens.
var bootstrapToken = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// claims are the parts of a ServiceAccount token that are shown.
type claims struct {
	Subject    string `json:"sub"`
	Expires    int64  `json:"exp"`
	Kubernetes struct {
		Secret struct {
			Name string `json:"name"`
		} `json:"secret"`
	} `json:"kubernetes.io"`
}

// ParseToken reads a bootstrap token: a ServiceAccount token or a Kubernetes bootstrap
// token.
// Other forms of bearer tokens are taken as they are if they can be one. Every
// error is an *Error of kind BadToken and does not quote the token.
func ParseToken(s string) (Token, error) {
	s = strings.TrimSpace(s)
	bad := func(why string) (Token, error) {
		return Token{}, &Error{
			Kind: BadToken, Problem: "the hub token cannot be used: " + why,
			Try: "print a new join command on the hub with: get token",
		}
	}
	if m := bootstrapToken.FindStringSubmatch(s); m != nil {
		return Token{secret: s, ID: m[1], User: "system:bootstrap:" + m[1]}, nil
	}
	if s == "" {
		return bad("it is empty")
	}
	if i := strings.IndexFunc(s, notInToken); i >= 0 {
		return bad(fmt.Sprintf("character %d is not one of a token", i+1))
	}
	if dots := strings.Count(s, "."); dots != 2 {
		if dots != 0 && strings.HasPrefix(s, "ey") {
			return bad("it was cut off or has too much")
		}
		return Token{secret: s}, nil
	}
	var c claims
	if err := jwk.UnverifiedClaims(s, &c); err != nil {
		return bad("it was cut off or changed")
	}
	token := Token{secret: s, User: c.Subject}
	token.ID, _ = strings.CutPrefix(c.Kubernetes.Secret.Name, names.JoinTokenSecretPrefix)
	if c.Expires > 0 {
		token.Expires = time.Unix(c.Expires, 0)
	}
	return token, nil
}

// notInToken reports characters that RFC 6750 does not allow in a bearer token.
func notInToken(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/=", r)
}
