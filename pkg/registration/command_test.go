package registration_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/controlplane"
)

// asCommand has the test binary be the program itself: proxies and AWS credentials
// are settings of a process.
const asCommand = "RUN_AS_COMMAND"

func runCommand() int {
	env := cmd.Env{
		IOStreams: cmd.Streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Name:      "kubectl ocm", Clock: clock.RealClock{}, Getenv: os.Getenv,
	}
	return int(cmd.Execute(context.Background(), env, os.Args[1:])) //nolint:forbidigo // It is a program of its own.
}

// run runs a command on a machine that reaches AWS and has the kubeconfig of one
// cluster's administrator, and no AWS credentials. It returns the exit code and what
// was printed.
func (f *eksFleet) run(t *testing.T, on *controlplane.ControlPlane, args ...string) (code int, printed string) {
	t.Helper()
	return f.runAs(t, nil, on, args...)
}

// runAs is run with AWS credentials in the environment.
func (f *eksFleet) runAs(t *testing.T, credentials []string, on *controlplane.ControlPlane, args ...string) (code int, printed string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(file, on.Kubeconfig(t, "admin"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, append(args, "--kubeconfig", file)...)
	c.Env = append(slices.Concat(f.account.Environment(), credentials), "HOME="+home, asCommand+"=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		code = exit.ExitCode()
	}
	return code, out.String()
}
