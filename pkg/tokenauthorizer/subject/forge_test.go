package subject_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	made "github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

// forge signs whatever it is given with a key that a cluster is believed to have.
type forge struct{ *made.Key }

func newForge(tb testing.TB, kid, algorithm string) *forge {
	tb.Helper()
	key := made.NewKey(tb, algorithm)
	key.ID = kid
	return &forge{key}
}

// key is the public half.
func (f *forge) key() jwk.Key { return jwk.Key{ID: f.ID, Public: f.Private.Public()} }

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
func (f *forge) header() forged { return forged{"alg": f.Algorithm, "kid": f.ID} }

// token signs claims with an honest header.
func (f *forge) token(tb testing.TB, claims forged) string {
	tb.Helper()
	return f.sign(tb, text(tb, f.header()), text(tb, claims))
}

// sign signs a header and a payload as they are, with the algorithm of the key.
func (f *forge) sign(tb testing.TB, header, payload string) string {
	tb.Helper()
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	return signed + "." + encode(f.Signature(tb, []byte(signed)))
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
	var claims forged
	if err := jwk.UnverifiedClaims(token, &claims); err != nil {
		tb.Fatal(err)
	}
	return claims
}
