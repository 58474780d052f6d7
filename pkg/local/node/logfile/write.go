package logfile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// MaxSize is the size, in bytes, at which a log is rotated.
const MaxSize = 10 << 20

const (
	maxLine = 16 << 10
	full    = 'F'
	part    = 'P'
)

// Copy copies what a container writes to r into the file path, until the end of
// r. It continues to read when the file cannot be written, so that the container
// is not held up, and returns the first error.
func Copy(path string, r io.Reader, clk clock.PassiveClock) error {
	w := &writer{path: path, clock: clk}
	lines := bufio.NewReaderSize(r, maxLine)
	var first error
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if err := w.write(line); err != nil && first == nil {
				first = err
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(first, err, w.close())
		}
	}
}

type writer struct {
	path  string
	clock clock.PassiveClock
	file  *os.File
	size  int
	line  []byte
}

func (w *writer) write(text []byte) error {
	if w.file == nil || w.size > MaxSize {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.line = w.clock.Now().UTC().AppendFormat(w.line[:0], time.RFC3339Nano)
	tag := byte(part)
	if text[len(text)-1] == '\n' {
		tag, text = full, text[:len(text)-1]
	}
	w.line = append(w.line, ' ', tag, ' ')
	w.line = append(append(w.line, text...), '\n')
	n, err := w.file.Write(w.line)
	w.size += n
	return err
}

func (w *writer) open() error {
	if err := w.close(); err != nil {
		return err
	}
	var err error
	w.size = 0
	// A file of its own, so that who follows the old one reads it to its end.
	if err = os.Remove(w.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.file, err = os.OpenFile(w.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return err
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}
