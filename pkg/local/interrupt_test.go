package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local"
)

// A start that is killed at any step is gone on with.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clusters")
	opts := options(t, dir, 0)
	hub := filepath.Join(dir, "clusters", "hub")
	t.Cleanup(func() {
		if _, err := local.Down(context.WithoutCancel(t.Context()), dir, clock.RealClock{}); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []string{
		"state.json", "control-plane/pki/sa.key", "control-plane/etcd", "control-plane/etcd/member/wal", "kubeconfig", "node/pods",
	} {
		done := make(chan error, 1)
		go func() { done <- local.Up(t.Context(), opts) }()
		eventually(t, step, func(context.Context) (bool, error) {
			_, err := os.Stat(filepath.Join(hub, step))
			return err == nil, nil
		})
		// What was there before this start may have ended the wait early; then
		// the supervisor is killed at an earlier step than meant, or not there yet.
		if s := status(t, dir)["hub"]; s.PID > 0 {
			kill(t, s.PID)
		}
		if err := <-done; err != nil && !errors.Is(err, local.ErrNotRunning) {
			t.Errorf("up, killed at %s: %v", step, err)
		}
	}
	up(t, opts)
	if s := status(t, dir)["hub"]; s.Phase != local.Running {
		t.Errorf("after all: %+v", s)
	}
}
