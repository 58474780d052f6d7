package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

const patience = 30 * time.Second

// start starts the test binary in a role, and returns a reader of its output.
func start(t *testing.T, group *process.Group, r string) (*process.Process, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	p, err := group.Start(&exec.Cmd{
		Path: self, Args: []string{"name", "arg"}, Env: []string{role + "=" + r, "WORD=hello"}, Stdout: out,
	})
	_ = out.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(in)
}

func newGroup(t *testing.T) *process.Group {
	t.Helper()
	group := process.NewGroup()
	t.Cleanup(group.Close)
	return group
}

func expectLine(t *testing.T, out *bufio.Reader, want string) {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil || line != want {
		t.Fatalf("output %q, %v, want %q", line, err, want)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	p, out := start(t, newGroup(t), "exit")
	expectLine(t, out, "hello [arg]\n")
	<-p.Done()
	if exit, ok := errors.AsType[*exec.ExitError](p.Err()); !ok || exit.ExitCode() != 5 {
		t.Errorf("it ended with %v", p.Err())
	}
	p.Kill() // is no error
}

func TestStop(t *testing.T) {
	t.Parallel()
	for r, want := range map[string]func(syscall.WaitStatus) bool{
		"polite":   func(s syscall.WaitStatus) bool { return s.ExitStatus() == 6 },
		"stubborn": func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL },
	} {
		p, out := start(t, newGroup(t), r)
		expectLine(t, out, "ready\n")
		if _, ended := p.Status(); ended {
			t.Errorf("%s ended by itself", r)
		}
		grace := patience
		if r == "stubborn" {
			grace = time.Millisecond
		}
		p.Stop(t.Context(), grace)
		if status, ended := p.Status(); !ended || !want(status) {
			t.Errorf("%s: ended %t, status %v", r, ended, status)
		}
	}
}

func TestCloseEndsProcesses(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	p, out := start(t, group, "stubborn")
	expectLine(t, out, "ready\n")
	group.Close()
	<-p.Done()
	if _, err := group.Start(&exec.Cmd{Path: "/bin/true"}); !errors.Is(err, process.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
}

func TestProcessDiesWithItsParent(t *testing.T) {
	t.Parallel()
	parent, out := start(t, newGroup(t), "parent")
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child does not run: %v", err)
	}
	parent.Kill()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return syscall.Kill(child, 0) != nil, nil
	})
	if err != nil {
		t.Errorf("the child outlives its parent: %v", err)
	}
}
