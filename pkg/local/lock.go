package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock that Up and Down hold, and returns what releases it.
func (l layout) lockDir() (release func(), err error) {
	f, err := os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = &HintedError{Err: ErrBusy, Todo: "wait for it to end, then run this again"}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		// A process that is being started right now has the file open until it executes
		// its program, and with it the lock: closing our descriptor does not release it.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}, nil
}

// acquire makes this process the supervisor of a cluster until it ends. Locks
// of this kind are lost when the process closes any descriptor of the file, so
// nothing else of a supervisor opens it.
func (l clusterLayout) acquire() (io.Closer, error) {
	f, err := os.OpenFile(l.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	lock := wholeFile()
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s has a supervisor already: %w", l.name(), err), f.Close())
	}
	return f, nil
}

// supervisor returns the process id of the cluster's supervisor, 0 if there is
// none. The kernel knows it, so that it is never that of another process.
func (l clusterLayout) supervisor() (int, error) {
	f, err := os.OpenFile(l.lock(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only asked
	lock := wholeFile()
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("supervisor of %s: %w", l.name(), err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

func wholeFile() unix.Flock_t {
	return unix.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
}
