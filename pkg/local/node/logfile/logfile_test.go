package logfile_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node/logfile"
)

func write(t *testing.T, path string, at time.Time, text string) {
	t.Helper()
	if err := logfile.Copy(path, strings.NewReader(text), clocktesting.NewFakePassiveClock(at)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, o logfile.Options) string {
	t.Helper()
	o.Clock = clock.RealClock{}
	var b bytes.Buffer
	if err := logfile.Read(t.Context(), &b, path, o, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x", 40<<10)
	write(t, path, at, "one\n\n"+long+"\nlast")
	for name, test := range map[string]struct {
		options logfile.Options
		want    string
	}{
		"all":        {logfile.Options{Tail: -1}, "one\n\n" + long + "\nlast"},
		"tail 0":     {logfile.Options{Tail: 0}, ""},
		"tail 1":     {logfile.Options{Tail: 1}, "last"},
		"tail 2":     {logfile.Options{Tail: 2}, long + "\nlast"},
		"tail 9":     {logfile.Options{Tail: 9}, "one\n\n" + long + "\nlast"},
		"limit":      {logfile.Options{Tail: -1, Limit: 5}, "one\n\n"},
		"timestamps": {logfile.Options{Tail: 1, Timestamps: true}, "2026-01-01T00:00:00Z last"},
		"since":      {logfile.Options{Tail: -1, Since: at.Add(time.Second)}, ""},
	} {
		if got := read(t, path, test.options); got != test.want {
			t.Errorf("%s: got %.60q of length %d, want %.60q of length %d", name, got, len(got), test.want, len(test.want))
		}
	}
	if got := read(t, path+"-none", logfile.Options{Tail: -1}); got != "" {
		t.Errorf("a log that does not exist: %q", got)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	in, container := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := logfile.Copy(path, in, clock.RealClock{}); err != nil {
			t.Error(err)
		}
	}()
	out, reader := io.Pipe()
	go func() {
		o := logfile.Options{Tail: -1, Follow: true, Ended: ended, Clock: clock.RealClock{}}
		reader.CloseWithError(logfile.Read(t.Context(), reader, path, o, nil))
	}()
	buffer := make([]byte, 64)
	for _, line := range []string{"first\n", "second\n"} {
		if _, err := container.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		n, err := io.ReadFull(out, buffer[:len(line)])
		if err != nil || string(buffer[:n]) != line {
			t.Fatalf("followed %q, %v, want %q", buffer[:n], err, line)
		}
	}
	_, _ = container.Write([]byte("end"))
	_ = container.Close()
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "end" {
		t.Errorf("the end is %q, %v", rest, err)
	}
}
