//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/terminal"
)

// TestConfirmOnATerminalAsks answers as a person does; no is the default.
func TestConfirmOnATerminalAsks(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]cli.Code{"y": cli.CodeDone, "yes": cli.CodeDone, "n": cli.CodeBlocked, "": cli.CodeBlocked} {
		term := terminal.Open(t, 80)
		env := cli.Env{IOStreams: genericiooptions.IOStreams{In: term.TTY, ErrOut: term.TTY}, Kube: cli.NewKube()}
		ended := make(chan error)
		go func() { ended <- env.Confirm(false, "Remove it?") }()
		await.Condition(t, time.Minute, "the question", func(context.Context) (bool, error) {
			return strings.Contains(term.Written(), "Remove it?"), nil
		})
		term.Type(t, answer+"\r")
		if err := <-ended; cli.ExitCode(err) != want {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

// TestConfirmWithoutATerminalNeedsYes is about scripts.
func TestConfirmWithoutATerminalNeedsYes(t *testing.T) {
	t.Parallel()
	env := cli.Env{Name: "kubectl ocm", IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, Kube: cli.NewKube()}
	if err := env.Confirm(false, "Remove it?"); cli.ExitCode(err) != cli.CodeUsage || !strings.Contains(cli.HintOf(err), "--yes") {
		t.Errorf("nothing was asked and nothing said: %v", err)
	}
	if err := env.Confirm(true, "Remove it?"); err != nil {
		t.Errorf("--yes: %v", err)
	}
	env.Name = cli.Clusteradm
	if err := env.Confirm(false, "Remove it?"); err != nil {
		t.Errorf("a script for clusteradm: %v", err)
	}
}

// TestDumbTerminal: a terminal that can only print is asked and answered without a control
// sequence, and shows no spinner.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	term := terminal.Open(t, 80)
	env := cli.Env{
		IOStreams: genericiooptions.IOStreams{In: term.TTY, ErrOut: term.TTY}, Kube: cli.NewKube(), Clock: clock.RealClock{},
		Getenv: func(name string) string { return map[string]string{"TERM": "dumb"}[name] },
	}
	err := env.Progress().Step(t.Context(), "Looking", func(context.Context, cli.Say) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- env.Confirm(false, "Remove it?") }()
	await.Condition(t, time.Minute, "the question", func(context.Context) (bool, error) {
		return strings.Contains(term.Written(), "Remove it? (y/N) "), nil
	})
	term.Type(t, "y\n")
	if err := <-ended; err != nil {
		t.Errorf("yes: %v", err)
	}
	if text := term.Written(); strings.Contains(text, "\x1b") || !strings.Contains(text, "Looking ...") {
		t.Errorf("written: %q", text)
	}
}
