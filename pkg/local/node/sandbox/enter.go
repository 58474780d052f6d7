package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter is the second step of Start, in the process that Launcher.Self names:
// it becomes the container. It returns only if that cannot be done; the error
// has been reported to Start already.
func Enter() error {
	// Capabilities and the exec belong to a thread.
	runtime.LockOSThread()
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(errorFD)
	report := os.NewFile(errorFD, "errors")
	err := enter()
	if report == nil {
		return errors.Join(err, errors.New("this command is run by the node of a local cluster only"))
	}
	_, writeErr := report.WriteString(err.Error())
	return errors.Join(err, writeErr)
}

func enter() error {
	if err := dieWithParent(); err != nil {
		return err
	}
	var spec Spec
	in := os.NewFile(specFD, "spec")
	if in == nil {
		return errors.New("no specification of a container")
	}
	if err := json.NewDecoder(in).Decode(&spec); err != nil {
		return fmt.Errorf("read the specification: %w", err)
	}
	if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := buildRoot(spec); err != nil {
		return err
	}
	dir := spec.WorkingDir
	if dir == "" {
		dir = "/"
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	argv := append([]string{spec.BinaryPath()}, spec.Args...)
	return fmt.Errorf("run %s: %w", spec.Binary, syscall.Exec(argv[0], argv, spec.Env)) //nolint:gosec // running it is the purpose
}

// dieWithParent asks the kernel once more to kill this process when its parent ends:
// the setting from its start belongs to its first thread, and this thread becomes the
// container.
func dieWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("die with the node: %w", err)
	}
	// Too late if the parent has ended before. It reads what is reported.
	report := []unix.PollFd{{Fd: errorFD}}
	_, err := unix.Poll(report, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("die with the node: %w", err)
	}
	if report[0].Revents&unix.POLLERR != 0 {
		return errors.New("the node has ended")
	}
	return nil
}

// dropPrivileges takes every capability away from what is executed next, and
// the way to regain one.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel's last capability was c-1
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("clear capabilities: %w", err)
	}
	return nil
}
