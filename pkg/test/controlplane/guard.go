package controlplane

import (
	"fmt"
	"os/exec"
	"syscall"
)

// Guard runs a command when this process ends without calling release, such as one that
// takes local clusters down: a test that is killed leaves nothing running. The command has
// a session of its own, its output is discarded, and it is tried again for five minutes
// while it fails: what this process was about to start may be in its way.
func Guard(command ...string) (release func(), err error) {
	// The shell reads to the end of a pipe whose other end only this process has.
	guard := exec.Command("sh", append([]string{"-c", `read -r _; for i in $(seq 60); do "$@" && exit; sleep 5; done`, "sh"}, command...)...) //nolint:gosec,noctx // it outlives this process
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := guard.StdinPipe(); err != nil {
		return nil, fmt.Errorf("guard what a test starts: %w", err)
	}
	if err := guard.Start(); err != nil {
		return nil, fmt.Errorf("guard what a test starts: %w", err)
	}
	return func() {
		_ = guard.Process.Kill()
		_ = guard.Wait()
	}, nil
}
