package local_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
)

// TestReleasedLock takes the lock again and again while processes are started, which
// have the file open for a moment.
func TestReleasedLock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "/bin/true").Run()
			}
		})
	}
	dir := t.TempDir()
	for range 2000 {
		release, err := local.LockDir(dir)
		if err != nil {
			t.Errorf("the lock was released, and yet: %v", err)
			break
		}
		release()
	}
	cancel()
	starting.Wait()
}
