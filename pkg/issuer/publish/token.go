package publish

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwt"
)

// errNoToken says that what the API server issued is no token that keys could
// be tried on.
var errNoToken = errors.New("the API server issued a token in an unknown form")

// ownToken is a token of this cluster, taken apart and not verified.
type ownToken struct {
	algorithm string
	keyID     string
	issuer    string
	// signed is what signature was made of.
	signed    []byte
	signature []byte
}

// parseOwn takes a token apart that this cluster's API server just issued. Its
// claims are believed because of where it comes from.
func parseOwn(token string) (ownToken, error) {
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if jwt.Header(token, &header) != nil || jwt.Claims(token, &claims) != nil {
		return ownToken{}, errNoToken
	}
	end := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
	if err != nil || claims.Issuer == "" {
		return ownToken{}, errNoToken
	}
	return ownToken{
		algorithm: header.Algorithm, keyID: header.KeyID, issuer: claims.Issuer,
		signed: []byte(token[:end]), signature: signature,
	}, nil
}
