package mint_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/mint"
)

// TestWarmHitAllocates at most twice.
func TestWarmHitAllocates(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
	e := run(t, mint.Config{Hub: hub.config()}, settings("team"))
	r := ask("c1")
	r.Target.Audiences = []string{"https://hub.example.com"}
	hit := func() {
		if _, _, err := e.Mint(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	hit()
	if n := testing.AllocsPerRun(1000, hit); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWarmHit(b *testing.B) {
	hub := &fakeHub{accounts: map[string]string{"team/worker": "u1"}}
	e, err := mint.New(mint.Config{Hub: hub.config()})
	if err != nil {
		b.Fatal(err)
	}
	r := ask("c1")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := e.Mint(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
