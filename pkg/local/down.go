package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pause"
)

const (
	// termPatience is how long a supervisor may take to stop its cluster.
	termPatience = 20 * time.Second
	killPatience = 5 * time.Second
)

// Down stops every cluster of a directory and removes all that Up has made. A
// directory without clusters is no error. removed are the clusters that were
// there.
func Down(ctx context.Context, path string, clk clock.WithTicker) (removed []string, err error) {
	dir := layout(path)
	if _, err := os.Stat(dir.marker()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	release, err := dir.lockDir()
	if err != nil {
		return nil, err
	}
	defer release()
	names, err := dir.names()
	if err != nil {
		return nil, err
	}
	failures := make([]error, len(names))
	var stopping sync.WaitGroup
	for i, name := range names {
		stopping.Go(func() {
			cluster := dir.cluster(name)
			failures[i] = stop(ctx, cluster, clk)
			if failures[i] == nil {
				failures[i] = remove(ctx, string(cluster), clk)
			}
		})
	}
	stopping.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return names, dir.removeFiles()
}

// removeFiles removes what is not a cluster's.
func (l layout) removeFiles() error {
	for _, file := range []string{l.clusters(), l.kubeconfig(), l.lock(), l.marker()} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// What is not ours keeps the directory.
	err := os.Remove(string(l))
	if parent := filepath.Dir(string(l)); err == nil && filepath.Base(parent) == productDir {
		err = os.Remove(parent)
	}
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stop ends the supervisor of a cluster, if it has one.
func stop(ctx context.Context, cluster clusterLayout, clk clock.WithTicker) error {
	for _, try := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGTERM, termPatience}, {syscall.SIGKILL, killPatience}} {
		pid, err := cluster.supervisor()
		if err != nil {
			return err
		}
		if pid == 0 {
			return nil
		}
		if err := syscall.Kill(pid, try.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the supervisor of %s, process %d: %w", cluster.name(), pid, err)
		}
		for deadline := clk.Now().Add(try.patience); clk.Now().Before(deadline); {
			if pid, err := cluster.supervisor(); err != nil || pid == 0 {
				return err
			}
			if !pause.For(ctx, clk, statePoll) {
				return context.Cause(ctx)
			}
		}
	}
	return fmt.Errorf("the supervisor of %s does not end", cluster.name())
}

// remove removes a directory. When its supervisor was killed, processes that
// die with it may for a moment still write.
func remove(ctx context.Context, dir string, clk clock.WithTicker) error {
	for deadline := clk.Now().Add(killPatience); ; {
		err := os.RemoveAll(dir)
		if err == nil || clk.Now().After(deadline) {
			return err
		}
		if !pause.For(ctx, clk, statePoll) {
			return err
		}
	}
}
