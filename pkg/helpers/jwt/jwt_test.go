package jwt_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwt"
)

func TestParts(t *testing.T) {
	t.Parallel()
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"kid":"1"}`)) + "." + encode([]byte(`{"iss":"https://issuer"}`)) + ".c2ln"
	var said struct{ Kid, Iss string }
	if err := errors.Join(jwt.Header(token, &said), jwt.Claims(token, &said)); err != nil {
		t.Fatal(err)
	}
	if said.Kid != "1" || said.Iss != "https://issuer" {
		t.Errorf("%+v", said)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "opaque", "e30.e30", "e30.e30.c2ln.x", "?.?.c2ln", "W10.W10.c2ln", "e3.e3.c2ln"} {
		var said struct{}
		if err := jwt.Header(token, &said); !errors.Is(err, jwt.ErrForm) {
			t.Errorf("%s: header: %v", token, err)
		}
		if err := jwt.Claims(token, &said); !errors.Is(err, jwt.ErrForm) {
			t.Errorf("%s: claims: %v", token, err)
		}
	}
}
