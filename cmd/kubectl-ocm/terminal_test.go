//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/terminal"
)

// testingKey is where a script keeps its testing.TB.
type testingKey struct{}

// control are the sequences that command a terminal.
var control = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]|\r`)

// cmdTerminal runs a command on a terminal of 80 columns, where a person sits:
// "terminal CODE ANSWERS COMMAND...". Each line of the file ANSWERS is a part of
// a question and, behind "=>", the answer. The file "screen" has what was
// written to the terminal, "stdout" of the terminal included.
func cmdTerminal(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: terminal code answers command...")
	}
	tb, ok := ts.Value(testingKey{}).(testing.TB)
	if !ok {
		ts.Fatalf("the script has no testing.TB")
	}
	term := terminal.Open(tb, 80)
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[2], args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.TTY, term.TTY, term.TTY
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		question, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=>")
		question = strings.TrimSpace(question)
		await.Condition(tb, time.Minute, "the question "+question, func(context.Context) (bool, error) {
			if len(ended) > 0 {
				ts.Fatalf("%v ended without asking %q:\n%s", args[2:], question, term.Written())
			}
			return strings.Contains(control.ReplaceAllString(term.Written(), ""), question), nil
		}, func() any { return term.Written() })
		term.Type(tb, strings.TrimSpace(answer)+"\r")
	}
	exit := <-ended
	term.Close()
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(control.ReplaceAllString(term.Written(), "")), 0o600))
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("%v ended with %s (%v), not with exit code %s:\n%s", args[2:], code, exit, args[0], term.Written())
	}
}
