//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A recorded directory has a link to the real localkube, the output of go test -json,
// and a directory for each test binary, which is that binary's TMPDIR. It is all that
// the programs of a control plane inherit.
const (
	localkubeLink = "localkube"
	eventsFile    = "events.json"
	costFile      = "cost.json"
	startsFile    = "starts"
)

// cost is what one test binary used, the processes that it waited for included.
type cost struct {
	Package string
	Wall    time.Duration
	CPU     time.Duration
}

// record runs a test binary and writes its cost.
func record(dir string, command []string) error {
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return err
	}
	// Local clusters run on when the command that started them has ended. Their processes
	// become ours, so that what they used is counted as well.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	// A run within a run has the variable already, and Go reads the first of two.
	if err := os.Setenv("TMPDIR", own); err != nil {
		return err
	}
	began := time.Now()
	binary, err := os.StartProcess(path, command, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = binary.Signal(s)
		}
	}()
	status, err := reap(binary.Pid)
	if err != nil {
		return err
	}
	err = writeCost(own, time.Since(began))
	if err == nil && status != 0 {
		err = exitError(status)
	}
	return err
}

// writeCost writes what the processes that were waited for have used.
func writeCost(own string, wall time.Duration) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		return err
	}
	data, err := json.Marshal(cost{Package: wd, Wall: wall, CPU: time.Duration(used.Utime.Nano() + used.Stime.Nano())})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(own, costFile), data, 0o600)
}

// reap waits for a process, and for all that become ours meanwhile.
func reap(pid int) (code int, err error) {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case ended != pid:
		case status.Exited():
			return status.ExitStatus(), nil
		default:
			return 128 + int(status.Signal()), nil
		}
	}
}

// exitError is the exit code of a test binary that failed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// become counts the start of a program and executes it.
func become(name string, args []string) error {
	own, err := recorded(os.TempDir())
	if err != nil {
		return err
	}
	if name == apiServer {
		if err := count(filepath.Join(own, startsFile)); err != nil {
			return err
		}
	}
	return syscall.Exec(filepath.Join(filepath.Dir(own), localkubeLink), args, os.Environ())
}

func count(path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n")
	return errors.Join(err, file.Close())
}

// recorded is the directory of the test binary that a temporary directory belongs to.
func recorded(dir string) (string, error) {
	for own := dir; own != filepath.Dir(own); own = filepath.Dir(own) {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(own), localkubeLink)); err == nil {
			return own, nil
		}
	}
	return "", fmt.Errorf("%s belongs to no recorded run", dir)
}
