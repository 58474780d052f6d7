package jwk_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

var algorithms = []string{jwk.RS256, jwk.RS384, jwk.RS512, jwk.ES256, jwk.ES384, jwk.ES512}

func TestParse(t *testing.T) {
	t.Parallel()
	var keys []*issuer.Key
	for _, algorithm := range algorithms {
		keys = append(keys, issuer.NewKey(t, algorithm))
	}
	set, err := jwk.Parse(issuer.JWKS(t, keys...))
	if err != nil || set.Ignored != 0 || len(set.Keys) != len(keys) {
		t.Fatalf("Parse: %d keys, %d ignored, %v; want all %d", len(set.Keys), set.Ignored, err, len(keys))
	}
	for i, key := range set.Keys {
		if key.ID != keys[i].ID || key.Algorithm != keys[i].Algorithm {
			t.Errorf("key %d is %s %s, want %s %s", i, key.ID, key.Algorithm, keys[i].ID, keys[i].Algorithm)
		}
		want, err := (&jose.JSONWebKey{Key: keys[i].Private.Public()}).Thumbprint(5)
		if err != nil {
			t.Fatal(err)
		}
		if key.Thumbprint != base64.RawURLEncoding.EncodeToString(want) {
			t.Errorf("key %d has thumbprint %s", i, key.Thumbprint)
		}
	}
}

// TestThumbprintOfRFC7638 takes the example of RFC 7638 §3.1.
func TestThumbprintOfRFC7638(t *testing.T) {
	t.Parallel()
	set, err := jwk.Parse([]byte(`{"keys":[{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx` +
		`4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0` +
		`h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4v` +
		`MQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256",` +
		`"kid":"2011-04-29"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.Keys[0].Thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"; got != want {
		t.Errorf("thumbprint %s, want %s", got, want)
	}
}

func TestParseIgnores(t *testing.T) {
	t.Parallel()
	good, bad := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	rsaKey := issuer.NewKey(t, jwk.RS256)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, member := range map[string]map[string]any{
		"no kid":              with(bad.JWK(t), "kid", nil),
		"empty kid":           with(bad.JWK(t), "kid", ""),
		"kid not a string":    with(bad.JWK(t), "kid", 7),
		"huge kid":            with(bad.JWK(t), "kid", strings.Repeat("k", 257)),
		"no kty":              with(bad.JWK(t), "kty", nil),
		"unknown kty":         with(bad.JWK(t), "kty", "AKP"),
		"kty in other case":   with(bad.JWK(t), "kty", "ec"),
		"Ed25519":             {"kid": "a", "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
		"unknown curve":       with(bad.JWK(t), "crv", "secp256k1"),
		"P-224":               issuer.KeyOf(t, jwk.ES256, p224).JWK(t),
		"curve mixed up":      with(bad.JWK(t), "crv", "P-384"),
		"point off the curve": with(bad.JWK(t), "y", good.JWK(t)["y"]),
		"no y":                with(bad.JWK(t), "y", nil),
		"1024 bit RSA":        issuer.KeyOf(t, jwk.RS256, weak).JWK(t),
		"exponent 1":          with(rsaKey.JWK(t), "e", "AQ"),
		"exponent 2":          with(rsaKey.JWK(t), "e", "Ag"),
		"even modulus":        with(rsaKey.JWK(t), "n", base64.RawURLEncoding.EncodeToString(slices.Concat([]byte{0x80}, make([]byte, 255)))),
		"huge modulus":        with(rsaKey.JWK(t), "n", strings.Repeat("_", 20000)),
		"not base64":          with(rsaKey.JWK(t), "n", "!"),
		"for encryption":      with(bad.JWK(t), "use", "enc"),
		"key_ops sign":        with(bad.JWK(t), "key_ops", []string{"sign"}),
		"key_ops a string":    with(bad.JWK(t), "key_ops", "verify"),
		"alg HS256":           with(bad.JWK(t), "alg", "HS256"),
		"alg none":            with(bad.JWK(t), "alg", "none"),
		"alg of RSA":          with(bad.JWK(t), "alg", "RS256"),
		"alg of other curve":  with(bad.JWK(t), "alg", "ES384"),
		"alg PS256":           with(rsaKey.JWK(t), "alg", "PS256"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := jwk.Parse(issuer.Set(t, member, good.JWK(t)))
			if err != nil {
				t.Fatal(err)
			}
			if set.Ignored != 1 || len(set.Reasons) != 1 || len(set.Keys) != 1 || set.Keys[0].ID != good.ID {
				t.Errorf("Parse: %+v; want one key ignored, with a reason, and the other taken", set)
			}
			if _, err := jwk.Parse(issuer.Set(t, member)); !errors.Is(err, jwk.ErrEmpty) {
				t.Errorf("alone: %v, want ErrEmpty", err)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	key, rsaKey := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.RS256)
	for name, member := range map[string]map[string]any{
		"no use":                  with(key.JWK(t), "use", nil),
		"no alg":                  with(key.JWK(t), "alg", nil),
		"empty key_ops":           with(key.JWK(t), "key_ops", []string{}),
		"key_ops verify":          with(key.JWK(t), "key_ops", []string{"sign", "verify"}),
		"certificates not looked": with(key.JWK(t), "x5c", []string{"rubbish"}),
		"unknown members":         with(rsaKey.JWK(t), "x-vendor", map[string]any{"a": 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if set, err := jwk.Parse(issuer.Set(t, member)); err != nil || len(set.Keys) != 1 {
				t.Errorf("Parse: %+v, %v; want the key", set, err)
			}
		})
	}
	if set, err := jwk.Parse(issuer.JWKS(t, key, rsaKey, key)); err != nil || len(set.Keys) != 2 {
		t.Errorf("a key listed twice: %+v, %v; want it once", set, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	a, b := issuer.NewKey(t, jwk.ES256), issuer.NewKey(t, jwk.ES256)
	many := make([]map[string]any, jwk.MaxKeys+1)
	for i := range many {
		many[i] = with(a.JWK(t), "kid", strconv.Itoa(i))
	}
	good := string(issuer.JWKS(t, a))
	for name, test := range map[string]struct {
		data string
		want error
	}{
		"nothing":            {"", jwk.ErrMalformed},
		"not JSON":           {"<html>", jwk.ErrMalformed},
		"null":               {"null", jwk.ErrMalformed},
		"an array":           {"[]", jwk.ErrMalformed},
		"no keys":            {"{}", jwk.ErrMalformed},
		"keys in other case": {strings.Replace(good, `"keys"`, `"Keys"`, 1), jwk.ErrMalformed},
		"keys an object":     {`{"keys":{}}`, jwk.ErrMalformed},
		"truncated":          {good[:len(good)-2], jwk.ErrMalformed},
		"two documents":      {good + good, jwk.ErrMalformed},
		"deep":               {`{"keys":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "}", jwk.ErrMalformed},
		"empty":              {`{"keys":[]}`, jwk.ErrEmpty},
		"null keys":          {`{"keys":null}`, jwk.ErrEmpty},
		"too long":           {good + strings.Repeat(" ", jwk.MaxBytes), jwk.ErrTooLarge},
		"too many":           {string(issuer.Set(t, many...)), jwk.ErrTooLarge},
		"symmetric":          {string(issuer.Set(t, a.JWK(t), map[string]any{"kty": "oct", "k": "c2VjcmV0", "kid": "x"})), jwk.ErrSecret},
		"oct without k":      {string(issuer.Set(t, a.JWK(t), map[string]any{"kty": "oct", "kid": "x"})), jwk.ErrSecret},
		"private":            {string(issuer.Set(t, with(a.JWK(t), "d", "c2VjcmV0"))), jwk.ErrSecret},
		"private, odd type":  {string(issuer.Set(t, a.JWK(t), with(b.JWK(t), "d", 7))), jwk.ErrSecret},
		"private, ignored":   {string(issuer.Set(t, a.JWK(t), with(with(b.JWK(t), "use", "enc"), "p", "cA"))), jwk.ErrSecret},
		"one id, two keys":   {string(issuer.Set(t, a.JWK(t), with(b.JWK(t), "kid", a.ID))), jwk.ErrDuplicate},
		"repeated keys":      {`{"keys":[],` + good[1:], jwk.ErrDuplicate},
		"repeated kid":       {strings.Replace(good, `"kid"`, `"kid":"other","kid"`, 1), jwk.ErrDuplicate},
		"repeated, escaped":  {strings.Replace(good, `"kid"`, `"\u006bid":"other","kid"`, 1), jwk.ErrDuplicate},
		"repeated, nested":   {strings.Replace(good, `"kid"`, `"v":[{"a":1,"a":{}}],"kid"`, 1), jwk.ErrDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if set, err := jwk.Parse([]byte(test.data)); !errors.Is(err, test.want) || len(set.Keys) != 0 {
				t.Errorf("Parse: %d keys, %v; want %v", len(set.Keys), err, test.want)
			} else if strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(issuer.JWKS(f, issuer.NewKey(f, jwk.RS256), issuer.NewKey(f, jwk.ES384)))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":"","kid":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := jwk.Parse(data)
		if (err == nil) != (len(set.Keys) > 0) {
			t.Fatalf("%d keys and %v", len(set.Keys), err)
		}
		if len(set.Keys)+set.Ignored > jwk.MaxKeys || len(set.Reasons) != set.Ignored {
			t.Fatalf("%d keys, %d ignored, %d reasons", len(set.Keys), set.Ignored, len(set.Reasons))
		}
		seen := map[string]bool{}
		for _, key := range set.Keys {
			if key.ID == "" || key.Thumbprint == "" || seen[key.ID] {
				t.Fatalf("key %+v", key)
			}
			seen[key.ID] = true
			for _, algorithm := range algorithms {
				if verify(key, encode([]byte(`{"alg":"`+algorithm+`"}`))+"."+encode(data)+"."+encode(data)) == nil {
					t.Fatal("a signature that nobody made is good")
				}
			}
		}
	})
}

// with returns member with one member changed, or without it when value is nil.
func with(member map[string]any, name string, value any) map[string]any {
	member = maps.Clone(member)
	member[name] = value
	if value == nil {
		delete(member, name)
	}
	return member
}
