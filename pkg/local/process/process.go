package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a started process. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a process, which is killed when the Group or this program ends. Files
// that it writes to can be closed once Start has returned.
func (g *Group) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := g.do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// PID is the process id on the host.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the process runs and when it ended with exit code 0, and an
// *exec.ExitError when it ended otherwise.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Status is how the process ended, and false while it runs.
func (p *Process) Status() (syscall.WaitStatus, bool) {
	select {
	case <-p.done:
	default:
		return 0, false
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status, ok
}

// Signal sends a signal; a process that has ended is no error.
func (p *Process) Signal(s os.Signal) {
	// The only error is that the process is gone.
	_ = p.cmd.Process.Signal(s)
}

// Kill ends the process at once and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end with SIGTERM and kills it when it has not ended
// within grace or before ctx is done. It returns when the process has ended.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
}
