package jwk_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			private := issuer.NewKey(t, algorithm)
			key := parse(t, private.JWK(t))
			open := parse(t, with(private.JWK(t), "alg", nil))
			good := private.Token(t, map[string]any{"sub": "a"})
			for _, key := range []jwk.Key{key, open} {
				if err := verify(key, good); err != nil {
					t.Errorf("its own signature: %v", err)
				}
			}
			parts := strings.Split(good, ".")
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil {
				t.Fatal(err)
			}
			signed := func(signature []byte) string { return parts[0] + "." + parts[1] + "." + encode(signature) }
			for _, i := range []int{0, len(signature) / 2, len(signature) - 1} {
				wrong := slices.Clone(signature)
				wrong[i] ^= 1
				refused(t, key, signed(wrong), jwk.ErrSignature)
			}
			refused(t, key, parts[0]+"."+encode([]byte(`{"sub":"b"}`))+"."+parts[2], jwk.ErrSignature)
			refused(t, key, signed(nil), jwk.ErrSignature)
			refused(t, key, signed(signature[1:]), jwk.ErrSignature)
			refused(t, key, signed(append(slices.Clone(signature), 0)), jwk.ErrSignature)
			refused(t, key, signed(append([]byte{0}, signature...)), jwk.ErrSignature)
			refused(t, key, signed(make([]byte, len(signature))), jwk.ErrSignature)
			for _, other := range append([]string{"", "none", "None", "HS256", "PS256", "EdDSA", "rs256"}, algorithms...) {
				if other == algorithm {
					continue
				}
				claimed := private.Sign(t, map[string]any{"alg": other, "kid": private.ID}, []byte(`{"sub":"a"}`))
				refused(t, key, claimed, jwk.ErrAlgorithm)
				if !jwk.Allowed(other) || other[:2] != algorithm[:2] {
					refused(t, open, claimed, jwk.ErrAlgorithm)
				}
			}
			refused(t, jwk.Key{Public: private.Private}, good, jwk.ErrAlgorithm)
			refused(t, jwk.Key{}, good, jwk.ErrAlgorithm)
		})
	}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func verify(key jwk.Key, text string) error {
	token, err := jwk.ParseToken(text)
	if err != nil {
		return err
	}
	return key.Verify(token)
}

func refused(t *testing.T, key jwk.Key, token string, want error) {
	t.Helper()
	if err := verify(key, token); !errors.Is(err, want) {
		t.Errorf("Verify(%s): %v, want %v", token, err, want)
	}
}

func FuzzVerify(f *testing.F) {
	keys := make([]jwk.Key, 0, len(algorithms))
	for _, algorithm := range algorithms {
		private := issuer.NewKey(f, algorithm)
		keys = append(keys, parse(f, private.JWK(f)))
		f.Add([]byte("message"), private.Signature(f, []byte("other message")))
	}
	f.Fuzz(func(t *testing.T, message, signature []byte) {
		for _, key := range keys {
			if verify(key, encode([]byte(`{"alg":"`+key.Algorithm+`"}`))+"."+encode(message)+"."+encode(signature)) == nil {
				t.Fatal("a signature that nobody made is good")
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, algorithm := range []string{jwk.RS256, jwk.ES256} {
		b.Run(algorithm, func(b *testing.B) {
			private := issuer.NewKey(b, algorithm)
			key, token := parse(b, private.JWK(b)), private.Token(b, map[string]any{"sub": "a"})
			b.ReportAllocs()
			for b.Loop() {
				if err := verify(key, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parse(tb testing.TB, member map[string]any) jwk.Key {
	tb.Helper()
	set, err := jwk.Parse(issuer.Set(tb, member))
	if err != nil {
		tb.Fatal(err)
	}
	return set.Keys[0]
}
