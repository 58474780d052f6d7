package jwks_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/jwk"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/issuer"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/jwks"
)

// BenchmarkLookup finds a known key, with no lock and no allocation.
func BenchmarkLookup(b *testing.B) {
	for _, clusters := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d_clusters", clusters), func(b *testing.B) {
			s, keys := fleet(b, clusters)
			kid := keys[len(keys)/2].ID
			ctx := b.Context()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Lookup(ctx, sharedIssuer, kid); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkPublish replaces the keys of one cluster among many, twice.
func BenchmarkPublish(b *testing.B) {
	for _, clusters := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("%d_clusters", clusters), func(b *testing.B) {
			s, keys := fleet(b, clusters)
			a, c := issuer.JWKS(b, keys[0]), issuer.JWKS(b, keys[1])
			b.ReportAllocs()
			for b.Loop() {
				if err := s.TakeProven(accepted("cluster-0"), sharedIssuer, a); err != nil {
					b.Fatal(err)
				}
				if err := s.TakeProven(accepted("cluster-0"), sharedIssuer, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBudget: no allocation for a known key, and 20 MiB for the keys of a
// thousand clusters with two RSA keys each.
func TestBudget(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	before := heap()
	s, keys := fleet(t, 1000)
	for _, status := range s.Status() {
		if len(status.KeyIDs) != 2 {
			t.Fatalf("cluster %s has %d keys, want 2", status.Cluster, len(status.KeyIDs))
		}
	}
	if used := heap() - before; used > 20<<20 {
		t.Errorf("%d KiB for the keys of 1000 clusters, the budget is 20 MiB", used>>10)
	} else {
		t.Logf("%d KiB for the keys of 1000 clusters", used>>10)
	}
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := s.Lookup(t.Context(), sharedIssuer, keys[0].ID); err != nil {
			t.Error(err)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations to find a known key, want none", allocations)
	}
	runtime.KeepAlive(s)
}

// bytesPerRun is what f allocates.
func bytesPerRun(f func()) float64 {
	const runs = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// fleet returns a store of clusters that publish two RSA keys each under one
// issuer, and the keys of the first. Making two thousand real keys takes
// minutes; a modulus that nobody can sign with is as large.
func fleet(tb testing.TB, clusters int) (*jwks.Store, []*issuer.Key) {
	tb.Helper()
	s := jwks.New(jwks.Config{Hub: true})
	if err := s.Configure([]jwks.Cluster{{Name: jwks.Everyone, Source: jwks.Source{Hub: true}}}, nil); err != nil {
		tb.Fatal(err)
	}
	first := []*issuer.Key{issuer.NewKey(tb, jwk.RS256), issuer.NewKey(tb, jwk.RS256)}
	if err := s.TakeProven(accepted("cluster-0"), sharedIssuer, issuer.JWKS(tb, first...)); err != nil {
		tb.Fatal(err)
	}
	for i := 1; i < clusters; i++ {
		set := issuer.Set(tb, dummy(tb, first[0], 2*i), dummy(tb, first[0], 2*i+1))
		if err := s.TakeProven(accepted(fmt.Sprintf("cluster-%d", i)), sharedIssuer, set); err != nil {
			tb.Fatal(err)
		}
	}
	s.HubSynced()
	return s, first
}

// dummy returns the i-th JWK of the size of key's.
func dummy(tb testing.TB, key *issuer.Key, i int) map[string]any {
	tb.Helper()
	member := key.JWK(tb)
	n, ok := member["n"].(string)
	if !ok {
		tb.Fatal("not an RSA key")
	}
	number := fmt.Sprintf("%06d", i) // Six digits are valid base64url.
	member["n"] = n[:len(n)-12] + number + n[len(n)-6:]
	member["kid"] = key.ID[:len(key.ID)-6] + number
	return member
}
