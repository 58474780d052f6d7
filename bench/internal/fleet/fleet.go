package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// Parallel is how many requests a benchmark itself has under way at a time.
const Parallel = 16

// Size is the number of clusters: the environment's BENCH_CLUSTERS, or 1,000.
func Size(b *testing.B) int {
	b.Helper()
	value := os.Getenv("BENCH_CLUSTERS")
	if value == "" {
		return 1000
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// Name is the name of a cluster.
func Name(i int) string { return fmt.Sprintf("cluster%04d", i) }

// Each does something about every one of n, some at a time. Errors fail the
// benchmark and keep nothing from being done.
func Each(b *testing.B, n int, do func(ctx context.Context, i int) error) {
	b.Helper()
	work := make(chan int)
	var group sync.WaitGroup
	for range Parallel {
		group.Go(func() {
			for i := range work {
				if err := do(b.Context(), i); err != nil && b.Context().Err() == nil {
					b.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	group.Wait()
}

// Kubeconfig writes the kubeconfig of a ServiceAccount's user and returns its
// path.
func Kubeconfig(b *testing.B, hub *controlplane.Own, user string) string {
	b.Helper()
	return KubeconfigAt(b, hub, hub.URL, user)
}

// KubeconfigAt is Kubeconfig for an API server that is reached at another URL.
func KubeconfigAt(b *testing.B, hub *controlplane.Own, url, user string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kubeconfig")
	data := bytes.ReplaceAll(hub.KubeconfigFor(b, user, "system:serviceaccounts"), []byte(hub.URL), []byte(url))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// Once keeps the result of a run that takes too long to be repeated. The zero
// value has none.
type Once[Result any] struct {
	mu     sync.Mutex
	result *Result
}

// Result returns what run returned when it was first asked for; however often Go
// wants a benchmark, it runs once.
func (o *Once[Result]) Result(b *testing.B, run func(*testing.B) *Result) *Result {
	b.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.result == nil {
		o.result = run(b)
	}
	return o.result
}
