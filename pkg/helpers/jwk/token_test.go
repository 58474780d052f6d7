package jwk_test

import (
	"errors"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

func TestUnverifiedClaims(t *testing.T) {
	t.Parallel()
	key := issuer.NewKey(t, jwk.ES256)
	text := key.Token(t, map[string]any{"iss": "https://issuer", "ISS": "another"})
	token, err := jwk.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := token.UnverifiedClaims(&claims); err != nil {
		t.Fatal(err)
	}
	if token.KeyID() != key.ID || claims.Issuer != "https://issuer" {
		t.Errorf("got key %q and %+v", token.KeyID(), claims)
	}
}

func TestParseTokenRejects(t *testing.T) {
	t.Parallel()
	const header = "eyJhbGciOiJSUzI1NiJ9" // {"alg":"RS256"}
	for name, text := range map[string]string{
		"nothing": "", "a word": "opaque", "two parts": header + ".e30", "four parts": header + ".e30.c2ln.x", "five parts": header + ".a.b.c.d",
		"no base64": "?.?.c2ln", "claims that are an array": header + ".W10.c2ln", "a header that is an array": "W10.e30.c2ln",
		"half of an object": header + ".e3.c2ln", "JSON instead": `{"payload":"e30","protected":"` + header + `","signature":"c2ln"}`,
	} {
		var claims struct{}
		if err := jwk.UnverifiedClaims(text, &claims); !errors.Is(err, jwk.ErrToken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := jwk.ParseToken("eyJhbGciOiJub25lIn0.e30.c2ln"); !errors.Is(err, jwk.ErrAlgorithm) {
		t.Errorf("the algorithm none: %v", err)
	}
}
