package controlplane_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// TestInterruptedStore: data of a first start that never ended are made anew, and
// no others.
func TestInterruptedStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin, finish := controlplane.Store(dir)
	member := filepath.Join(dir, "etcd", "member")
	start := func(kept bool) {
		t.Helper()
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(member); (err == nil) != kept {
			t.Fatalf("etcd's data: %v", err)
		}
	}
	start(false)
	for range 2 {
		if err := os.MkdirAll(member, 0o700); err != nil {
			t.Fatal(err)
		}
		start(false) // The start before was interrupted.
	}
	if err := os.MkdirAll(member, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		start(true)
	}
}
