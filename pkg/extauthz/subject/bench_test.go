package subject_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/subject"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
)

// signers are a key of each kind that Kubernetes' API servers mostly have.
func signers(tb testing.TB) map[string]*forge {
	tb.Helper()
	return map[string]*forge{jwk.RS256: newForge(tb, "key-1", jwk.RS256), jwk.ES256: newForge(tb, "key-1", jwk.ES256)}
}

// BenchmarkCold verifies tokens that were never seen, beside the bare check of
// their signature. The budget is one and a half times as long.
func BenchmarkCold(b *testing.B) {
	for algorithm, f := range signers(b) {
		token := f.token(b, example())
		end := strings.LastIndexByte(token, '.')
		signed := []byte(token[:end])
		signature, err := base64.RawURLEncoding.DecodeString(token[end+1:])
		if err != nil {
			b.Fatal(err)
		}
		key := f.key()
		b.Run(algorithm+"/signature", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := key.Verify(algorithm, signed, signature); err != nil {
					b.Fatal(err)
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

// TestAllocations holds the verifier to few allocations: a request with a
// remembered token may have 25 in all, from the wire to the wire.
func TestAllocations(t *testing.T) { //nolint:paralleltest // Others' allocations would count.
	f := newForge(t, "key-1", jwk.RS256)
	verifier, token := fuzzVerifier(f, strict()), f.token(t, example())
	for name, tt := range map[string]struct {
		verify func() (subject.Identity, error)
		most   float64
	}{
		// None, but the race detector takes from the pool what others put there.
		"warm": {func() (subject.Identity, error) { return verifier.Verify(t.Context(), token) }, 3},
		"cold": {func() (subject.Identity, error) { return verifier.Explain(t.Context(), token, nil) }, 40},
	} {
		got := testing.AllocsPerRun(100, func() {
			if _, err := tt.verify(); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %v allocations, want %v at most", name, got, tt.most)
		}
		t.Logf("%s: %v allocations", name, got)
	}
}
