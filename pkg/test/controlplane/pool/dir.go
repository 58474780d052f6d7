package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

const lockName = "lock"

// newDir makes a state directory that is locked while this test runs, and
// removes those whose tests were killed.
func newDir() (dir string, lock *os.File, err error) {
	root := filepath.Join(os.TempDir(), "controlplane-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", nil, err
	}
	sweep(root)
	for {
		if dir, err = os.MkdirTemp(root, ""); err != nil {
			return "", nil, err
		}
		lock, err = lockDir(dir)
		if err == nil {
			return dir, lock, nil
		}
		// Another test's sweep came between the two; take another one.
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, err
		}
	}
}

// sweep removes the directories whose lock is free. It ignores errors of directories
// that are in use or that another sweep is removing.
func sweep(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		if lock, err := lockDir(dir); err == nil {
			removeAll(dir)
			_ = lock.Close()
		}
	}
}

// removeAll removes a directory. Programs that were killed may for a moment
// still write; what then is left, a later test's sweep removes.
func removeAll(dir string) {
	for range 100 {
		if os.RemoveAll(dir) == nil {
			return
		}
		clock.RealClock{}.Sleep(10 * time.Millisecond)
	}
}

func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	// The lock counts only if the file is still the one in the directory.
	held, err := lock.Stat()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	found, err := os.Stat(path)
	if err == nil && !os.SameFile(held, found) {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
