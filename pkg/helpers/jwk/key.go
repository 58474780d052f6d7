package jwk

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// minRSABits is the weakest RSA key that is trusted (RFC 7518 §3.3).
const minRSABits = 2048

// maxIDBytes bounds a key id; Kubernetes' have 43 characters.
const maxIDBytes = 256

// Key is a public key that verifies signatures.
type Key struct {
	// ID is the "kid", never empty.
	ID string
	// Algorithm is the "alg", empty when the JWK names none.
	Algorithm string
	// Public is an *rsa.PublicKey or an *ecdsa.PublicKey.
	Public crypto.PublicKey
	// Thumbprint is the RFC 7638 thumbprint with SHA-256, in base64url: the same
	// key has the same thumbprint under any id.
	Thumbprint string
}

// secret names a member that only a private or symmetric key has, regardless of the
// key's type claims.
func secret(member map[string]any) (string, bool) {
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"} {
		if _, ok := member[name]; ok {
			return name, true
		}
	}
	if kty, _ := text(member, "kty"); kty == "oct" {
		return "kty", true
	}
	return "", false
}

// parseKey reads one JWK; an error says why it is of no use to us.
func parseKey(member map[string]any) (Key, error) {
	id, err := text(member, "kid")
	switch {
	case err != nil:
		return Key{}, err
	case id == "":
		return Key{}, errors.New("it has no kid")
	case len(id) > maxIDBytes:
		return Key{}, fmt.Errorf("its kid is longer than %d bytes", maxIDBytes)
	}
	if err := forVerifying(member); err != nil {
		return Key{}, err
	}
	public, thumbprint, err := publicKey(member)
	if err != nil {
		return Key{}, err
	}
	algorithm, err := text(member, "alg")
	if err != nil {
		return Key{}, err
	}
	key := Key{ID: id, Algorithm: algorithm, Public: public, Thumbprint: thumbprint}
	if algorithm != "" {
		if err := key.fits(algorithm); err != nil {
			return Key{}, err
		}
	}
	return key, nil
}

func forVerifying(member map[string]any) error {
	use, err := text(member, "use")
	if err != nil {
		return err
	}
	if use != "" && use != "sig" {
		return fmt.Errorf("its use is %q, not sig", use)
	}
	value, ok := member["key_ops"]
	operations, array := value.([]any)
	switch {
	case ok && !array:
		return errors.New("its key_ops is not an array of strings")
	case len(operations) > 0 && !slices.Contains(operations, any("verify")):
		return errors.New("its key_ops lacks verify")
	}
	return nil
}

// publicKey reads the key material alone: certificates and URLs next to it prove
// nothing to us and are never looked at (RFC 8725 §3.10).
func publicKey(member map[string]any) (crypto.PublicKey, string, error) {
	kty, err := text(member, "kty")
	if err != nil {
		return nil, "", err
	}
	material := map[string]any{}
	switch kty {
	case "RSA", "EC":
		for _, name := range []string{"kty", "n", "e", "crv", "x", "y"} {
			if value, ok := member[name]; ok {
				material[name] = value
			}
		}
	default:
		return nil, "", fmt.Errorf("its kty %q is not supported", kty)
	}
	document, err := json.Marshal(material)
	if err != nil {
		return nil, "", err
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(document); err != nil {
		return nil, "", errors.New("its key material is not valid, or of a size or curve that is not supported")
	}
	if err := strong(parsed.Key); err != nil {
		return nil, "", err
	}
	sum, err := parsed.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, "", errors.New("its thumbprint cannot be computed")
	}
	return parsed.Key, base64.RawURLEncoding.EncodeToString(sum), nil
}

func strong(public crypto.PublicKey) error {
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		return nil // The parser knows no other curve than ours.
	case *rsa.PublicKey:
		switch bits := public.N.BitLen(); {
		case bits < minRSABits:
			return fmt.Errorf("an RSA key of %d bits is too weak, %d are needed", bits, minRSABits)
		case public.N.Bit(0) == 0, public.E < 3, public.E%2 == 0, public.E > math.MaxInt32:
			return errors.New("its RSA modulus or exponent is not valid")
		}
		return nil
	default:
		return fmt.Errorf("a %T is not supported", public)
	}
}

// text returns a string member, empty when it is absent.
func text(member map[string]any, name string) (string, error) {
	value, ok := member[name]
	text, is := value.(string)
	if ok && !is {
		return "", fmt.Errorf("its %s is not a string", name)
	}
	return text, nil
}
