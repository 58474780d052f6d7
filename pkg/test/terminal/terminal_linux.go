package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
)

// Rows is the height of every terminal.
const Rows = 24

// Terminal is a pseudo-terminal; a test holds the end of the person.
type Terminal struct {
	// TTY is the end of the command.
	TTY *os.File

	person *os.File
	mu     sync.Mutex
	text   strings.Builder
	closed chan struct{}
	// answered counts the questions where the cursor is.
	answered int
}

// where asks a terminal for the position of its cursor.
const where = "\x1b[6n"

// Open returns a terminal of so many columns that ends with the test.
func Open(tb testing.TB, columns uint16) *Terminal {
	tb.Helper()
	person, tty, err := open()
	if err != nil {
		tb.Fatal(err)
	}
	t := &Terminal{TTY: tty, person: person, closed: make(chan struct{})}
	t.Resize(tb, columns)
	go t.read()
	// Hanging up ends the commands of this terminal.
	tb.Cleanup(func() { _ = errors.Join(tty.Close(), person.Close()) })
	return t
}

// open returns the two ends of a new pseudo-terminal.
func open() (person, tty *os.File, err error) {
	if person, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	return person, tty, nil
}

// read collects what the command writes, until its end is closed. Prompts ask a
// terminal where its cursor is; it is always in the last corner.
func (t *Terminal) read() {
	defer close(t.closed)
	buffer := make([]byte, 4096)
	for {
		n, err := t.person.Read(buffer)
		t.mu.Lock()
		t.text.Write(buffer[:n])
		for asked := strings.Count(t.text.String(), where); t.answered < asked; t.answered++ {
			_, _ = fmt.Fprintf(t.person, "\x1b[%d;%dR", Rows, 80)
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Resize changes the width, as a person does with the window.
func (t *Terminal) Resize(tb testing.TB, columns uint16) {
	tb.Helper()
	if err := unix.IoctlSetWinsize(int(t.TTY.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: Rows}); err != nil {
		tb.Fatal(err)
	}
}

// Type types a text when the command has read all that came before and waits for more.
// Prompts ask where the cursor is. They keep what is before the answer and drop what is
// behind it in the same read, so no answer may be on its way when the text is written.
func (t *Terminal) Type(tb testing.TB, text string) {
	tb.Helper()
	await.Condition(tb, time.Minute, "the command waits for input", func(context.Context) (bool, error) {
		t.mu.Lock() // Nothing is answered meanwhile.
		defer t.mu.Unlock()
		if unread, err := t.unread(); err != nil || unread > 0 || !t.isRead() {
			return false, err
		}
		_, err := io.WriteString(t.person, text)
		return err == nil, err
	})
}

// unread counts the bytes that the command has not read. The kernel hands over what is
// written to a terminal some time later; poll does that at once (n_tty_poll).
func (t *Terminal) unread() (int, error) {
	fd := int32(t.TTY.Fd()) //nolint:gosec // The kernel's descriptors are ints.
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, 0)
	}
	if err != nil {
		return 0, err
	}
	return unix.IoctlGetInt(int(t.TTY.Fd()), unix.TIOCINQ)
}

// isRead says that a thread of a process is blocked in a read of the terminal.
func (t *Terminal) isRead() bool {
	threads, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/syscall")
	if err != nil {
		return false
	}
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil {
			continue // It has ended.
		}
		var number, fd uint64
		if _, err := fmt.Sscanf(string(data), "%d 0x%x", &number, &fd); err != nil || number != unix.SYS_READ {
			continue
		}
		file, err := os.Readlink(filepath.Join(filepath.Dir(thread), "fd", strconv.FormatUint(fd, 10)))
		if err == nil && file == t.TTY.Name() {
			return true
		}
	}
	return false
}

// Written returns all that was written so far, and an echo of what was typed.
func (t *Terminal) Written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Close closes the end of the command and waits until all was read.
func (t *Terminal) Close() {
	if t.TTY.Close() == nil {
		<-t.closed
	}
}
