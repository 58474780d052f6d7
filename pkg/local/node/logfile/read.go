package logfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"k8s.io/utils/clock"
)

const followPoll = 100 * time.Millisecond

// Options say what of a log is read, in the terms of corev1.PodLogOptions.
type Options struct {
	// Tail is the number of lines from the end; negative is all.
	Tail int64
	// Limit is the largest number of bytes; 0 is no limit.
	Limit int64
	// Since leaves out what was written before.
	Since time.Time
	// Timestamps puts the time before each line.
	Timestamps bool
	// Follow reads until Ended is closed.
	Follow bool
	// Ended is closed when nothing is written any more.
	Ended <-chan struct{}
	// Clock paces following.
	Clock clock.WithTicker
}

// Read writes a log to w. A file that does not exist is an empty log. Writes
// are followed by a call of flush, which may be nil.
func Read(ctx context.Context, w io.Writer, path string, o Options, flush func()) error {
	f, err := open(ctx, path, o)
	if err != nil || f == nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if o.Tail >= 0 {
		if err := SeekTail(f, o.Tail); err != nil {
			return err
		}
	}
	r := &reader{options: o, out: w, left: o.Limit, in: bufio.NewReader(f)}
	for {
		// What is written before the end is seen after it.
		ended := !o.Follow || closed(o.Ended)
		err := r.drain()
		if flush != nil {
			flush()
		}
		if errors.Is(err, errLimit) {
			return nil
		}
		if err != nil || ended {
			return err
		}
		if err := pause(ctx, o); err != nil {
			return err
		}
	}
}

// open waits for a file that does not exist yet but is expected.
func open(ctx context.Context, path string, o Options) (*os.File, error) {
	for {
		ended := !o.Follow || closed(o.Ended)
		f, err := os.Open(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		if ended {
			return nil, nil
		}
		if err := pause(ctx, o); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, o Options) error {
	timer := o.Clock.NewTimer(followPoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-o.Ended:
	case <-timer.C():
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// SeekTail moves to the beginning of the last n lines.
func SeekTail(f *os.File, n int64) error {
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	start := len(data)
	for ; n > 0 && start > 0; n-- {
		start--
		// Parts of a line count as one line with their end.
		for start > 0 && (data[start-1] != '\n' || isPart(data[:start-1])) {
			start--
		}
	}
	_, err = f.Seek(int64(start), io.SeekStart)
	return err
}

// isPart reports whether the last line of data is a part of a longer one.
func isPart(data []byte) bool {
	_, tag, _, ok := split(data[bytes.LastIndexByte(data, '\n')+1:])
	return ok && tag == part
}

func split(line []byte) (stamp []byte, tag byte, text []byte, ok bool) { //nolint:revive // function-result-limit: the three parts of a line
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(rest) < 2 {
		return nil, 0, nil, false
	}
	return stamp, rest[0], rest[2:], true
}

var errLimit = errors.New("limit reached")

type reader struct {
	options Options
	in      *bufio.Reader
	out     io.Writer
	left    int64
	partial []byte
	inLine  bool
}

// drain writes what has been logged so far. A line that is being written is
// kept for the next call.
func (r *reader) drain() error {
	for {
		line, err := r.in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			r.partial = append(r.partial, line...)
			return nil
		}
		if err != nil {
			return err
		}
		line = append(r.partial, line...)
		r.partial = nil
		if err := r.line(bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return err
		}
	}
}

func (r *reader) line(line []byte) error {
	stamp, tag, text, ok := split(line)
	if !ok {
		return nil
	}
	if !r.options.Since.IsZero() {
		at, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err == nil && at.Before(r.options.Since) {
			return nil
		}
	}
	var out []byte
	if r.options.Timestamps && !r.inLine {
		out = append(append(out, stamp...), ' ')
	}
	out = append(out, text...)
	r.inLine = tag == part
	if !r.inLine {
		out = append(out, '\n')
	}
	return r.write(out)
}

func (r *reader) write(data []byte) error {
	limited := r.options.Limit > 0
	if limited && int64(len(data)) >= r.left {
		if _, err := r.out.Write(data[:r.left]); err != nil {
			return err
		}
		return errLimit
	}
	r.left -= int64(len(data))
	_, err := r.out.Write(data)
	return err
}
