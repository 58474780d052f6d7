package fingerprint_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/fingerprint"
)

func TestSum(t *testing.T) {
	t.Parallel()
	h := fingerprint.New()
	seen := map[fingerprint.Sum]int{}
	for n := range 5000 {
		token := strings.Repeat("t", n)
		sum := h.Sum(token)
		if before, ok := seen[sum]; ok {
			t.Fatalf("tokens of %d and %d bytes have the same fingerprint", before, n)
		}
		seen[sum] = n
		if n%1000 == 0 && h.Sum(token) != sum {
			t.Errorf("the fingerprint of a token of %d bytes changes", n)
		}
	}
	if fingerprint.New().Sum("token") == h.Sum("token") {
		t.Error("two processes have the same fingerprint of a token")
	}
	if short := h.Sum("token").Short(); !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(short) {
		t.Errorf("short: %q", short)
	}
}

func TestSumAtOnce(t *testing.T) {
	t.Parallel()
	h := fingerprint.New()
	want := h.Sum("token")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if h.Sum("token") != want {
					t.Error("the fingerprint changes")
					return
				}
			}
		})
	}
	wg.Wait()
}
