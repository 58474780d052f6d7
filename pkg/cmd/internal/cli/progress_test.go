//go:build linux

package cli_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/terminal"
)

// drawing is one state of a progress line on a terminal.
var drawing = regexp.MustCompile(`\r\x1b\[K([^\r\n]*)`)

// TestProgressLineFitsTheTerminal draws a long line on a terminal and makes the
// window narrower and wider meanwhile: the line never reaches the last column,
// so it never becomes a second line, and it uses what a wider window has.
func TestProgressLineFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const title = "Waiting for the deployments"
	term := terminal.Open(t, 80)
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	env := cli.Env{IOStreams: genericiooptions.IOStreams{ErrOut: term.TTY}, Clock: clk}
	err := env.Progress().Step(t.Context(), title, func(_ context.Context, say cli.Say) error {
		say("pod %s, of a namespace with a long name, is not ready:\nthe image cannot be pulled \x1b[2J %s", strings.Repeat("x", 100), "世界")
		for _, columns := range []uint16{80, 40, 200, 10, 300} {
			term.Resize(t, columns)
			// The first drawing after the change may have begun before it.
			draw(t, term, clk)
			line := draw(t, term, clk)
			checkWidth(t, line, int(columns))
			if columns == 300 && !strings.HasSuffix(line, "[2J 世界") {
				t.Errorf("a terminal with room for all of it shows only %q", line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	term.Close()
	if text := term.Written(); strings.Count(text, "\n") != 1 || !regexp.MustCompile(`\r\x1b\[Kok   `+title+`( \(\d+s\))?\r\n$`).MatchString(text) {
		t.Errorf("a step is not one line at the end:\n%q", text)
	}
	if strings.Contains(term.Written(), "\x1b[2J") {
		t.Error("a message from elsewhere clears the terminal")
	}
}

// TestSeveralSpeakAtOnce: the parts of one wait are looked at by goroutines of
// their own, and each of their lines is whole.
func TestSeveralSpeakAtOnce(t *testing.T) {
	t.Parallel()
	const speakers, times = 4, 50
	var out strings.Builder // It is not made for several writers.
	env := cli.Env{IOStreams: genericiooptions.IOStreams{ErrOut: &out}, Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	err := env.Progress().Step(t.Context(), "Waiting", func(_ context.Context, say cli.Say) error {
		var all sync.WaitGroup
		for speaker := range speakers {
			all.Go(func() {
				for i := range times {
					say("%d says %d", speaker, i)
				}
			})
		}
		all.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^    \d says \d+$`).FindAllString(out.String(), -1)
	if len(lines) != speakers*times {
		t.Errorf("%d lines are whole, want %d:\n%s", len(lines), speakers*times, out.String())
	}
}

// draw lets the spinner turn once and returns the line that it drew.
func draw(t *testing.T, term *terminal.Terminal, clk *clocktesting.FakeClock) string {
	t.Helper()
	before := len(drawing.FindAllString(term.Written(), -1))
	var lines [][]string
	await.Condition(t, time.Minute, "the line is drawn again", func(context.Context) (bool, error) {
		clk.Step(100 * time.Millisecond)
		lines = drawing.FindAllStringSubmatch(term.Written(), -1)
		return len(lines) > before, nil
	})
	return lines[len(lines)-1][1]
}

func checkWidth(t *testing.T, line string, columns int) {
	t.Helper()
	if width := utf8.RuneCountInString(line) + strings.Count(line, "世") + strings.Count(line, "界"); width >= columns {
		t.Errorf("a line of %d columns on a terminal of %d: %q", width, columns, line)
	}
	if len(line) < columns-3 && columns < 100 {
		t.Errorf("%q leaves a terminal of %d columns unused", line, columns)
	}
}

// TestTalkDuringAStepHasItsOwnLine says something while the spinner turns.
func TestTalkDuringAStepHasItsOwnLine(t *testing.T) {
	t.Parallel()
	term := terminal.Open(t, 80)
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	env := cli.Env{IOStreams: genericiooptions.IOStreams{ErrOut: term.TTY}, Clock: clk}
	err := env.Progress().Step(t.Context(), "Verifying", func(context.Context, cli.Say) error {
		draw(t, term, clk)
		env.Warn("the clocks differ by %s", time.Minute)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	term.Close()
	if !strings.Contains(term.Written(), "\r\x1b[KWarning: the clocks differ by 1m0s\r\n") {
		t.Errorf("the warning is in the line of the step:\n%q", term.Written())
	}
}
