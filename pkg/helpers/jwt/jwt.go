package jwt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// ErrForm says that something is no JSON Web Token of the form that is looked
// for. It quotes nothing, because that could be a secret.
var ErrForm = errors.New("no JSON Web Token with what was expected in it")

// Header reads the header of a signed token (RFC 7515 §7.1) into a struct or a
// map, as encoding/json does. An error wraps nothing but ErrForm.
func Header(token string, into any) error { return decode(token, 0, into) }

// Claims does the same with the claims of a token (RFC 7519 §4).
func Claims(token string, into any) error { return decode(token, 1, into) }

func decode(token string, part int, into any) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ErrForm
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[part])
	if err != nil || json.Unmarshal(data, into) != nil {
		return ErrForm
	}
	return nil
}
