package subject_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// forge signs whatever it is given with a key that a cluster is believed to have.
type forge struct {
	kid     string
	private crypto.Signer
}

func rsaForge(tb testing.TB, kid string) *forge {
	tb.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return &forge{kid: kid, private: private}
}

func ecForge(tb testing.TB, kid string, curve elliptic.Curve) *forge {
	tb.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return &forge{kid: kid, private: private}
}

// key is the public half.
func (f *forge) key() jwk.Key { return jwk.Key{ID: f.kid, Public: f.private.Public()} }

// object is a JSON object.
type object = map[string]any

// with returns o with changes; a nil value removes a member.
func (o forged) with(changes object) forged {
	o = maps.Clone(o)
	for name, value := range changes {
		if value == nil {
			delete(o, name)
			continue
		}
		o[name] = value
	}
	return o
}

// forged are claims, or a header, to be changed.
type forged object

// header is what an API server would put there.
func (f *forge) header(tb testing.TB) forged {
	tb.Helper()
	return forged{"alg": f.algorithm(tb), "kid": f.kid}
}

func (f *forge) algorithm(tb testing.TB) string {
	tb.Helper()
	switch private := f.private.(type) {
	case *rsa.PrivateKey:
		return jwk.RS256
	case *ecdsa.PrivateKey:
		switch private.Curve {
		case elliptic.P256():
			return jwk.ES256
		case elliptic.P384():
			return jwk.ES384
		case elliptic.P521():
			return jwk.ES512
		}
	}
	tb.Fatalf("no algorithm for a %T", f.private)
	return ""
}

// token signs claims with an honest header.
func (f *forge) token(tb testing.TB, claims forged) string {
	tb.Helper()
	return f.sign(tb, text(tb, f.header(tb)), text(tb, claims))
}

// sign signs a header and a payload as they are, with the algorithm of the key.
func (f *forge) sign(tb testing.TB, header, payload string) string {
	tb.Helper()
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	hash := map[string]crypto.Hash{
		jwk.RS256: crypto.SHA256, jwk.ES256: crypto.SHA256, jwk.ES384: crypto.SHA384, jwk.ES512: crypto.SHA512,
	}[f.algorithm(tb)]
	digest := hash.New()
	digest.Write([]byte(signed))
	if private, ok := f.private.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, private, digest.Sum(nil))
		if err != nil {
			tb.Fatal(err)
		}
		size := (private.Curve.Params().BitSize + 7) / 8
		signature := make([]byte, 2*size)
		r.FillBytes(signature[:size])
		s.FillBytes(signature[size:])
		return signed + "." + encode(signature)
	}
	signature, err := f.private.Sign(rand.Reader, digest.Sum(nil), hash)
	if err != nil {
		tb.Fatal(err)
	}
	return signed + "." + encode(signature)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func text(tb testing.TB, value any) string {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// claimsOf returns the claims of a token.
func claimsOf(tb testing.TB, token string) forged {
	tb.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		tb.Fatal(err)
	}
	var claims forged
	if err := json.Unmarshal(data, &claims); err != nil {
		tb.Fatal(err)
	}
	return claims
}
