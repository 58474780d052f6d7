package jwk

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha256" // For the hashes of the algorithms.
	_ "crypto/sha512"
	"errors"
	"fmt"
	"math/big"
)

// Why Verify refuses.
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

// Allowed says whether algorithm is one that some Key could verify with.
func Allowed(algorithm string) bool {
	switch algorithm {
	case RS256, RS384, RS512, ES256, ES384, ES512:
		return true
	}
	return false
}

// Verify checks signature, the raw bytes of a JWS signature (RFC 7518 §3.3 and
// §3.4), over signed. The error is ErrAlgorithm or ErrSignature.
func (k Key) Verify(algorithm string, signed, signature []byte) error {
	if k.Algorithm != "" && k.Algorithm != algorithm {
		return fmt.Errorf("%w: the key is for %s, the token says %q", ErrAlgorithm, k.Algorithm, algorithm)
	}
	hash, err := k.hash(algorithm)
	if err != nil {
		return err
	}
	digest := hash.New()
	digest.Write(signed)
	sum := digest.Sum(nil)
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		if rsa.VerifyPKCS1v15(public, hash, sum, signature) == nil {
			return nil
		}
	case *ecdsa.PublicKey:
		if verifyEC(public, sum, signature) {
			return nil
		}
	}
	return ErrSignature
}

// verifyEC checks the concatenation of r and s, each as long as the curve's field.
func verifyEC(public *ecdsa.PublicKey, digest, signature []byte) bool {
	size := (public.Curve.Params().BitSize + 7) / 8
	if len(signature) != 2*size {
		return false
	}
	r := new(big.Int).SetBytes(signature[:size])
	s := new(big.Int).SetBytes(signature[size:])
	return ecdsa.Verify(public, digest, r, s)
}

// hash returns the hash of algorithm, if algorithm fits the key's type and curve.
func (k Key) hash(algorithm string) (crypto.Hash, error) {
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		switch algorithm {
		case RS256:
			return crypto.SHA256, nil
		case RS384:
			return crypto.SHA384, nil
		case RS512:
			return crypto.SHA512, nil
		}
	case *ecdsa.PublicKey:
		switch bits := public.Curve.Params().BitSize; {
		case bits == 256 && algorithm == ES256:
			return crypto.SHA256, nil
		case bits == 384 && algorithm == ES384:
			return crypto.SHA384, nil
		case bits == 521 && algorithm == ES512:
			return crypto.SHA512, nil
		}
	}
	return 0, fmt.Errorf("%w: %q and a %s", ErrAlgorithm, algorithm, k.kind())
}

func (k Key) kind() string {
	switch public := k.Public.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("%d bit RSA key", public.N.BitLen())
	case *ecdsa.PublicKey:
		return public.Curve.Params().Name + " key"
	default:
		return fmt.Sprintf("%T", public)
	}
}
