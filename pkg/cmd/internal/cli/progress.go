package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/printable"
)

// slow is the time from which on a finished step shows how long it took.
const slow = 2 * time.Second

// spin is how often a terminal sees that a step is alive.
const spin = 100 * time.Millisecond

// eraseLine empties the line of a terminal that the cursor is in.
const eraseLine = "\r\x1b[K"

// Progress reports what a command is doing: a step per line, with a spinner on
// a terminal only. It writes to Env.Err.
type Progress struct {
	out   io.Writer
	tty   bool
	clock clock.WithTicker
	// suffix says that nothing takes place.
	suffix string
	trail  *trail
}

// Progress returns the progress of this command.
func (e Env) Progress() *Progress {
	p := &Progress{out: e.ErrOut, tty: e.animated(), clock: e.Clock}
	if e.Kube != nil {
		p.suffix, p.trail = e.Kube.DryRunSuffix(), e.Kube.trail
	}
	return p
}

// Say reports what a running step is waiting for. Saying the same again prints
// nothing. Several goroutines of a step may say something.
type Say func(format string, args ...any)

// Step runs fn under a title in the present participle ("Applying the CRDs").
// fn's error is returned as it is; the line says that the step failed.
func (p *Progress) Step(ctx context.Context, title string, fn func(context.Context, Say) error) error {
	s := &step{p: p, title: title + p.suffix, start: p.clock.Now(), done: make(chan struct{})}
	s.begin()
	err := fn(ctx, s.say)
	s.end(err)
	if ctx.Err() != nil {
		p.trail.stop(title)
	}
	return err
}

// Say prints a line of talk, or several: what it says of others is text, as Printable has it.
func (e Env) Say(format string, args ...any) {
	before := ""
	if e.animated() {
		// A step may be drawn in this line; it draws itself again below.
		before = eraseLine
	}
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i := range lines {
		lines[i] = printable.Line(lines[i])
	}
	_, _ = fmt.Fprintln(e.ErrOut, before+strings.Join(lines, "\n"))
}

// Warn prints a line that a person should not miss.
func (e Env) Warn(format string, args ...any) {
	e.Say("Warning: "+format, args...)
}

// step is one running line. Its goroutine, on a terminal only, ends in end.
type step struct {
	p     *Progress
	title string
	start time.Time
	done  chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	last string
	// writing orders the lines of those who speak at one time.
	writing sync.Mutex
}

func (s *step) begin() {
	if !s.p.tty {
		s.print("%s ...\n", s.title)
		return
	}
	ticker := s.p.clock.NewTicker(spin)
	s.wg.Go(func() {
		defer ticker.Stop()
		for i := 0; ; i++ {
			s.draw(i)
			select {
			case <-s.done:
				return
			case <-ticker.C():
			}
		}
	})
}

func (s *step) draw(i int) {
	const frames = `|/-\`
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	line := fmt.Sprintf(" %c %s", frames[i%len(frames)], s.title)
	if last != "" {
		line += ": " + last
	}
	// The width is asked for each time: a person may resize the window. A line
	// that reaches the last column moves the cursor to the next line, where
	// nothing erases it any more.
	s.print(eraseLine+"%s", cut(line, terminalWidth(s.p.out)-1))
}

// cut shortens a text to so many columns of a terminal.
func cut(text string, columns int) string {
	const mark = "..."
	used, fits := 0, 0 // fits is the end of what leaves room for the mark
	for i, r := range text {
		if used <= columns-len(mark) {
			fits = i
		}
		if used += cells(r); used > columns {
			return text[:fits] + mark[:min(max(columns, 0), len(mark))]
		}
	}
	return text
}

// cells is how many columns a character takes at most. Wide characters begin
// with the Hangul; taking narrow ones behind them for wide cuts a line early,
// which is harmless.
func cells(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

func (s *step) say(format string, args ...any) {
	text := printable.Line(fmt.Sprintf(format, args...))
	s.mu.Lock()
	same := text == s.last
	s.last = text
	s.mu.Unlock()
	if !same && !s.p.tty {
		s.print("    %s\n", text)
	}
}

func (s *step) end(err error) {
	close(s.done)
	s.wg.Wait()
	mark := "ok  "
	if err != nil {
		mark = "FAIL"
	}
	took := ""
	if d := s.p.clock.Since(s.start); d >= slow {
		took = fmt.Sprintf(" (%s)", d.Round(time.Second))
	}
	switch {
	case s.p.tty:
		s.print(eraseLine+"%s %s%s\n", mark, s.title, took)
	case err != nil || took != "":
		s.print("%s %s%s\n", mark, s.title, took)
	}
}

func (s *step) print(format string, args ...any) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, _ = fmt.Fprintf(s.p.out, format, args...)
}
