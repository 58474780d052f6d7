package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/sandbox"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/process"
)

func launcher(t *testing.T) sandbox.Launcher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	group := process.NewGroup()
	t.Cleanup(group.Close)
	return sandbox.Launcher{Group: group, Self: []string{self, "enter"}}
}

func TestContainer(t *testing.T) {
	t.Parallel()
	l := launcher(t)
	writable, readOnly := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(writable, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Start(sandbox.Spec{
		Root: t.TempDir(), Hostname: "pod-1", Binary: l.Self[0], Args: []string{"a", "b c"},
		Env: []string{role + "=show"}, ReadOnlyRoot: true,
		Mounts: []sandbox.Mount{
			{Source: writable, Path: "/volume/deep"},
			{Source: readOnly, Path: "/etc/ro", ReadOnly: true},
		},
	}, out)
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	got, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	base := filepath.Base(l.Self[0])
	want := fmt.Sprintf("pid=1 host=pod-1 argv0=/%s args=[a b c] file=content caps=0000000000000000\n"+
		"home=true rootfs=true readonly=true writable=true passwd=true\n", base)
	if string(got) != want {
		t.Errorf("container sees\n%swant\n%s", got, want)
	}
	if status, ended := p.Status(); !ended || status.ExitStatus() != 3 {
		t.Errorf("exit status %v, want 3", status)
	}
	if _, err := os.Stat("/etc/ro"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a mount point was made on the host")
	}
}

func TestSetUpErrorsReachTheCaller(t *testing.T) {
	t.Parallel()
	l := launcher(t)
	_, err := l.Start(sandbox.Spec{
		Root: t.TempDir(), Hostname: "pod", Binary: l.Self[0],
		Mounts: []sandbox.Mount{{Source: "/no/such/source", Path: "/volume"}},
	}, os.Stderr)
	if !errors.Is(err, sandbox.ErrSetUp) || !strings.Contains(err.Error(), "/volume") {
		t.Errorf("got %v, want an error about the volume", err)
	}
}

// A container that ignores SIGTERM, as the first process of a PID namespace
// does without a handler, dies with the one that started it.
func TestContainerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, self, t.TempDir()) // killed by cancel
	cmd.Env = append(os.Environ(), role+"=parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("no process id: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the container does not run: %v", err)
	}
	cancel()
	_ = cmd.Wait()
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return syscall.Kill(pid, 0) != nil, nil
	})
	if err != nil {
		t.Fatalf("the container outlives its parent: %v", err)
	}
}
