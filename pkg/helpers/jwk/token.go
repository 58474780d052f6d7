package jwk

import (
	"errors"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// ErrToken says that a text is no signed token with the expected content. It
// quotes nothing, because the text could be a secret.
var ErrToken = errors.New("not a signed JSON Web Token of the expected form")

// Token is a signed token whose signature is not verified.
type Token struct{ parsed *jwt.JSONWebToken }

// ParseToken reads a token in its compact form. The error is ErrToken, or
// ErrAlgorithm where no Key could verify it.
func ParseToken(text string) (Token, error) {
	parsed, err := jwt.ParseSigned(text, algorithms())
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return Token{}, ErrAlgorithm
	}
	if err != nil {
		return Token{}, ErrToken
	}
	return Token{parsed: parsed}, nil
}

// KeyID is the "kid" of the header, empty if there is none.
func (t Token) KeyID() string { return t.parsed.Headers[0].KeyID }

// UnverifiedClaims decodes the claims into a struct or a map. They are true only
// if another component vouches for the token, such as the API server that issued it
// over a verified connection. The error is ErrToken.
func (t Token) UnverifiedClaims(into any) error {
	if t.parsed.UnsafeClaimsWithoutVerification(into) != nil {
		return ErrToken
	}
	return nil
}

// UnverifiedClaims decodes the claims of a token as the method of Token does.
func UnverifiedClaims(text string, into any) error {
	token, err := ParseToken(text)
	if err != nil {
		return ErrToken
	}
	return token.UnverifiedClaims(into)
}
