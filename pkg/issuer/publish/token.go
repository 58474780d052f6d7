package publish

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ownToken{}, errNoToken
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := decodePart(parts[0], &header); err != nil {
		return ownToken{}, err
	}
	if err := decodePart(parts[1], &claims); err != nil {
		return ownToken{}, err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || claims.Issuer == "" {
		return ownToken{}, errNoToken
	}
	return ownToken{
		algorithm: header.Algorithm, keyID: header.KeyID, issuer: claims.Issuer,
		signed: []byte(parts[0] + "." + parts[1]), signature: signature,
	}, nil
}

func decodePart(part string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%w: it cannot be decoded", errNoToken) // The cause could quote it.
	}
	return nil
}
