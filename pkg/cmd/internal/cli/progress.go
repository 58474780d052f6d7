package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// slow is the time from which on a finished step shows how long it took.
const slow = 2 * time.Second

// spin is how often a terminal sees that a step is alive.
const spin = 100 * time.Millisecond

// Progress tells a person what a command is doing: a step per line, with a
// spinner on a terminal only. It writes to Env.Err.
type Progress struct {
	out   io.Writer
	tty   bool
	clock clock.WithTicker
}

// Progress returns the progress of this command.
func (e Env) Progress() *Progress {
	return &Progress{out: e.Err, tty: isTerminal(e.Err), clock: e.Clock}
}

// Say reports what a running step is waiting for. Saying the same again prints
// nothing.
type Say func(format string, args ...any)

// Step runs fn under a title in the present participle ("Applying the CRDs").
// fn's error is returned as it is; the line says that the step failed.
func (p *Progress) Step(ctx context.Context, title string, fn func(context.Context, Say) error) error {
	s := &step{p: p, title: title, start: p.clock.Now(), done: make(chan struct{})}
	s.begin()
	err := fn(ctx, s.say)
	s.end(err)
	return err
}

// Say prints a line of talk.
func (e Env) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(e.Err, format+"\n", args...)
}

// Warn prints a line that a person should not miss.
func (e Env) Warn(format string, args ...any) {
	_, _ = fmt.Fprintf(e.Err, "Warning: "+format+"\n", args...)
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
	s.print("\r\x1b[K%s", line)
}

func (s *step) say(format string, args ...any) {
	// Conditions of Kubernetes objects have several lines at times.
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
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
		s.print("\r\x1b[K%s %s%s\n", mark, s.title, took)
	case err != nil || took != "":
		s.print("%s %s%s\n", mark, s.title, took)
	}
}

func (s *step) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.p.out, format, args...)
}
