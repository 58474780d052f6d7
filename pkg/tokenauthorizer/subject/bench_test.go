package subject_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/subject"
)

// signers are a key of each kind that Kubernetes' API servers mostly have.
func signers(tb testing.TB) map[string]*forge {
	tb.Helper()
	return map[string]*forge{jwk.RS256: newForge(tb, "key-1", jwk.RS256), jwk.ES256: newForge(tb, "key-1", jwk.ES256)}
}

// BenchmarkCold verifies tokens that were never seen, beside the bare check of
// their signature. The budget is twice as long.
func BenchmarkCold(b *testing.B) {
	for algorithm, f := range signers(b) {
		token := f.token(b, example())
		key := f.key()
		b.Run(algorithm+"/signature", func(b *testing.B) {
			end := strings.LastIndexByte(token, '.')
			signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if !bare(f, []byte(token[:end]), signature) {
					b.Fatal("the signature does not match")
				}
			}
		})
		b.Run(algorithm+"/verify", func(b *testing.B) {
			keys := new(keyring).add("forged", issuer, key)
			verifier := subject.NewVerifier(keys, always(strict()), clocktesting.NewFakePassiveClock(time.Unix(fuzzTime+1, 0)))
			b.ReportAllocs()
			for b.Loop() {
				keys.generation.Add(1) // What was remembered is void.
				if _, err := verifier.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bare checks a signature with the standard library alone.
func bare(f *forge, signed, signature []byte) bool {
	sum := sha256.Sum256(signed)
	switch public := f.Private.Public().(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		half := len(signature) / 2
		return ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	}
	return false
}

// BenchmarkWarm verifies a token that is remembered.
func BenchmarkWarm(b *testing.B) {
	for algorithm, f := range signers(b) {
		b.Run(algorithm, func(b *testing.B) {
			verifier, token := fuzzVerifier(f, strict()), f.token(b, example())
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := verifier.Verify(b.Context(), token); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// TestWarmAllocations holds the verifier to few allocations for a remembered token.
func TestWarmAllocations(t *testing.T) { //nolint:paralleltest // Others' allocations would count.
	f := newForge(t, "key-1", jwk.RS256)
	verifier, token := fuzzVerifier(f, strict()), f.token(t, example())
	got := testing.AllocsPerRun(100, func() {
		if _, err := verifier.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	})
	// None, but the race detector takes from the pool what others put there.
	if got > 3 {
		t.Errorf("%v allocations", got)
	}
}
