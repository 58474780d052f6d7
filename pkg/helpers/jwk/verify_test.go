package jwk_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	message := []byte("header.payload")
	for _, algorithm := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			private := issuer.NewKey(t, algorithm)
			key := parse(t, private.JWK(t))
			open := parse(t, with(private.JWK(t), "alg", nil))
			signature := private.Signature(t, message)
			for _, key := range []jwk.Key{key, open} {
				if err := key.Verify(algorithm, message, signature); err != nil {
					t.Errorf("its own signature: %v", err)
				}
			}
			for i := range []int{0, len(signature) / 2, len(signature) - 1} {
				wrong := slices.Clone(signature)
				wrong[i] ^= 1
				refused(t, key, algorithm, message, wrong, jwk.ErrSignature)
			}
			refused(t, key, algorithm, []byte("header.Payload"), signature, jwk.ErrSignature)
			refused(t, key, algorithm, message, nil, jwk.ErrSignature)
			refused(t, key, algorithm, message, signature[1:], jwk.ErrSignature)
			refused(t, key, algorithm, message, append(slices.Clone(signature), 0), jwk.ErrSignature)
			refused(t, key, algorithm, message, append([]byte{0}, signature...), jwk.ErrSignature)
			refused(t, key, algorithm, message, make([]byte, len(signature)), jwk.ErrSignature)
			for _, other := range append([]string{"", "none", "None", "HS256", "PS256", "EdDSA", "rs256"}, algorithms...) {
				if other == algorithm {
					continue
				}
				refused(t, key, other, message, signature, jwk.ErrAlgorithm)
				if !jwk.Allowed(other) || other[:2] != algorithm[:2] {
					refused(t, open, other, message, signature, jwk.ErrAlgorithm)
				}
			}
			refused(t, jwk.Key{Public: private.Private}, algorithm, message, signature, jwk.ErrAlgorithm)
			refused(t, jwk.Key{}, algorithm, message, signature, jwk.ErrAlgorithm)
		})
	}
}

func refused(t *testing.T, key jwk.Key, algorithm string, message, signature []byte, want error) {
	t.Helper()
	if err := key.Verify(algorithm, message, signature); !errors.Is(err, want) {
		t.Errorf("Verify(%q): %v, want %v", algorithm, err, want)
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
			if key.Verify(key.Algorithm, message, signature) == nil {
				t.Fatal("a signature that nobody made is good")
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	message := []byte("header.payload")
	for _, algorithm := range []string{jwk.RS256, jwk.ES256} {
		b.Run(algorithm, func(b *testing.B) {
			private := issuer.NewKey(b, algorithm)
			key, signature := parse(b, private.JWK(b)), private.Signature(b, message)
			b.ReportAllocs()
			for b.Loop() {
				if err := key.Verify(algorithm, message, signature); err != nil {
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
