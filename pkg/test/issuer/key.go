package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"testing"
	"time"
)

// Key is a signing key.
type Key struct {
	// ID is its kid, derived from the public key as kube-apiserver does.
	ID string
	// Algorithm is the signing algorithm.
	Algorithm string
	// Private is an *rsa.PrivateKey or an *ecdsa.PrivateKey.
	Private crypto.Signer
}

// NewKey makes a key for algorithm: RS256, RS384, RS512 (2048 bits), ES256,
// ES384 or ES512.
func NewKey(tb testing.TB, algorithm string) *Key {
	tb.Helper()
	var private crypto.Signer
	var err error
	switch algorithm {
	case "RS256", "RS384", "RS512":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	default:
		tb.Fatalf("no key for algorithm %q", algorithm)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return KeyOf(tb, algorithm, private)
}

// KeyOf returns private as a Key with the id that kube-apiserver gives it.
func KeyOf(tb testing.TB, algorithm string, private crypto.Signer) *Key {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return &Key{ID: encode(sum[:]), Algorithm: algorithm, Private: private}
}

// JWK returns the public key as a JWK, to be changed at will.
func (k *Key) JWK(tb testing.TB) map[string]any {
	tb.Helper()
	jwk := map[string]any{"kid": k.ID, "use": "sig", "alg": k.Algorithm}
	switch public := k.Private.Public().(type) {
	case *rsa.PublicKey:
		jwk["kty"] = "RSA"
		jwk["n"] = encode(public.N.Bytes())
		jwk["e"] = encode(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 4 || x || y
		if err != nil {
			tb.Fatal(err)
		}
		half := (len(point) - 1) / 2
		jwk["kty"] = "EC"
		jwk["crv"] = public.Curve.Params().Name
		jwk["x"] = encode(point[1 : 1+half])
		jwk["y"] = encode(point[1+half:])
	default:
		tb.Fatalf("no JWK for a %T", public)
	}
	return jwk
}

// JWKS returns the key set of keys.
func JWKS(tb testing.TB, keys ...*Key) []byte {
	tb.Helper()
	jwks := make([]map[string]any, 0, len(keys))
	for _, key := range keys {
		jwks = append(jwks, key.JWK(tb))
	}
	return Set(tb, jwks...)
}

// Set returns a key set of JWKs, well-formed or not.
func Set(tb testing.TB, jwks ...map[string]any) []byte {
	tb.Helper()
	return marshal(tb, map[string]any{"keys": jwks})
}

// Token signs claims under the header that kube-apiserver writes: alg and kid,
// no typ.
func (k *Key) Token(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	return k.Sign(tb, map[string]any{"alg": k.Algorithm, "kid": k.ID}, marshal(tb, claims))
}

// Sign makes a compact JWS with any header and any payload, signed with the
// key's own algorithm, regardless of the header.
func (k *Key) Sign(tb testing.TB, header map[string]any, payload []byte) string {
	tb.Helper()
	signed := encode(marshal(tb, header)) + "." + encode(payload)
	return signed + "." + encode(k.Signature(tb, []byte(signed)))
}

// Signature signs data in the form of a JWS (RFC 7518 §3.3 and §3.4).
func (k *Key) Signature(tb testing.TB, data []byte) []byte {
	tb.Helper()
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[k.Algorithm[2:]]
	digest := hash.New()
	digest.Write(data)
	switch private := k.Private.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, private, digest.Sum(nil))
		if err != nil {
			tb.Fatal(err)
		}
		size := (private.Curve.Params().BitSize + 7) / 8
		signature := make([]byte, 2*size)
		r.FillBytes(signature[:size])
		s.FillBytes(signature[size:])
		return signature
	default:
		signature, err := private.Sign(rand.Reader, digest.Sum(nil), hash)
		if err != nil {
			tb.Fatal(err)
		}
		return signature
	}
}

// BoundClaims are the claims of a token of an hour that kube-apiserver 1.32 or
// newer mints for the ServiceAccount account in namespace, without a bound
// object. Changes are applied on top; a nil value removes a claim.
func BoundClaims(issuer, namespace, account string, now time.Time, changes ...map[string]any) map[string]any {
	claims := map[string]any{
		"iss": issuer,
		"sub": "system:serviceaccount:" + namespace + ":" + account,
		"aud": []string{"https://hub.example.com"},
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(time.Hour).Unix(),
		"jti": "3f1a6a0c-9d5e-4c38-8d5b-0f6a1c2b3d4e",
		"kubernetes.io": map[string]any{
			"namespace":      namespace,
			"serviceaccount": map[string]any{"name": account, "uid": "uid-of-" + namespace + "-" + account},
		},
	}
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func marshal(tb testing.TB, value any) []byte {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
