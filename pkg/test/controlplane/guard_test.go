package controlplane_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// guardedVariable makes TestGuarded the process that ends.
const (
	guardedVariable = "TEST_GUARDED_FILE"
	releaseVariable = "TEST_GUARD_RELEASED"
)

// TestGuard: what a process guards is cleaned up when it is killed, and not when it
// released the guard.
func TestGuard(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	killed, released := filepath.Join(dir, "killed"), filepath.Join(dir, "released")
	for _, env := range [][]string{{guardedVariable + "=" + released, releaseVariable + "=1"}, {guardedVariable + "=" + killed}} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestGuarded$")
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("it was not killed: %s", out)
		}
	}
	await.Condition(t, await.Patience, "the guard's command", func(context.Context) (bool, error) {
		_, err := os.Stat(killed)
		return err == nil, nil
	})
	if _, err := os.Stat(released); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a guard that was released ran its command: %v", err)
	}
}

// TestGuarded is the process that is killed.
func TestGuarded(t *testing.T) {
	t.Parallel()
	file := os.Getenv(guardedVariable)
	if file == "" {
		return
	}
	release, err := controlplane.Guard("touch", file)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(releaseVariable) != "" {
		release()
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_ = self.Kill()
	select {}
}
