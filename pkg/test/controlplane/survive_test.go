package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

func TestNothingSurvives(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, end string
		signal    syscall.Signal
		// swept says that the directory is removed by the next test that starts
		// a control plane, because the one that made it had no time to.
		swept bool
	}{
		{name: "the tests pass", end: "pass"},
		{name: "interrupt", end: "wait", signal: syscall.SIGINT},
		{name: "panic", end: "panic", swept: true},
		{name: "kill -9", end: "wait", signal: syscall.SIGKILL, swept: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestHeld$")
			// It has a pool of its own, also where the run has one.
			cmd.Env = append(os.Environ(), variable+"="+test.end, controlplane.PoolVariable+"=")
			var talk bytes.Buffer
			cmd.Stderr = &talk
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("the test binary says nothing: %v; %s", err, talk.String())
			}
			dir := strings.TrimSpace(line)
			if test.signal != 0 {
				if len(processes(t, dir)) == 0 {
					t.Error("no program runs before the end")
				}
				if err := cmd.Process.Signal(test.signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // most of them fail, as they shall
			eventually(t, "the end of every program", func(context.Context) (bool, error) {
				return len(processes(t, dir)) == 0, nil
			})
			if test.swept {
				controlplane.Start(t)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory is still there: %v", err)
			}
		})
	}
}

// processes lists the programs that work in a directory.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			found = append(found, link)
		}
	}
	return found
}
