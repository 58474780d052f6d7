package jwk

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Why Verify fails.
var (
	// ErrAlgorithm: the algorithm is not allowed, or does not fit the key.
	ErrAlgorithm = errors.New("the algorithm does not fit the key")
	// ErrSignature: the key did not make this signature.
	ErrSignature = errors.New("the signature does not match")
)

// The algorithms (RFC 7518 §3.1) that Kubernetes signs with, and their RSA
// relatives. There is no "none" and nothing with a shared secret.
const (
	RS256 = "RS256"
	RS384 = "RS384"
	RS512 = "RS512"
	ES256 = "ES256"
	ES384 = "ES384"
	ES512 = "ES512"
)

func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{RS256, RS384, RS512, ES256, ES384, ES512}
}

// Allowed says whether algorithm is one that some Key could verify with.
func Allowed(algorithm string) bool {
	return slices.Contains(algorithms(), jose.SignatureAlgorithm(algorithm))
}

// Verify checks the signature of a token. The error is ErrAlgorithm or ErrSignature.
func (k Key) Verify(t Token) error {
	algorithm := t.parsed.Headers[0].Algorithm
	if k.Algorithm != "" && k.Algorithm != algorithm {
		return fmt.Errorf("%w: the key is for %s, the token says %q", ErrAlgorithm, k.Algorithm, algorithm)
	}
	if err := k.fits(algorithm); err != nil {
		return err
	}
	if t.parsed.Claims(k.Public) != nil {
		return ErrSignature
	}
	return nil
}

// fits returns an error unless algorithm is for the key's type and curve.
func (k Key) fits(algorithm string) error {
	kind, ok := fmt.Sprintf("%T", k.Public), false
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		kind = fmt.Sprintf("%d bit RSA key", public.N.BitLen())
		ok = strings.HasPrefix(algorithm, "RS")
	case *ecdsa.PublicKey:
		kind = public.Curve.Params().Name + " key"
		ok = algorithm == map[int]string{256: ES256, 384: ES384, 521: ES512}[public.Curve.Params().BitSize]
	}
	if !ok || !Allowed(algorithm) {
		return fmt.Errorf("%w: %q and a %s", ErrAlgorithm, algorithm, kind)
	}
	return nil
}
