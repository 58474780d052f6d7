package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"
)

// How soon a change is seen.
const (
	// debounce is for how long a file must be left alone before it is read: an
	// editor writes more than once, and a kubelet swaps several links.
	debounce = 250 * time.Millisecond
	// poll is how often a file is read where nothing reports a change, such as
	// on some network file systems.
	poll = 30 * time.Second
)

// Watch reads path again whenever its content has changed, until ctx ends, and calls
// changed with the result: a Config, or an error, in which case the caller continues
// with the last one. The first call has the existing content, in the caller's
// goroutine; later calls are sequential. Watch watches the directory and not the file,
// because a ConfigMap's mount replaces a link there.
func Watch(ctx context.Context, c clock.WithTicker, path string, opts Options, changed func(*Config, error)) error {
	events, err := newNotifier()
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer func() { _ = events.close() }()
	// A missing directory is reported by the first reading.
	dir := filepath.Dir(path)
	watching := events.add(dir) == nil
	w := watcher{path: path, opts: opts, changed: changed}
	w.look()
	ticker := c.NewTicker(poll)
	defer ticker.Stop()
	var quiet <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-events.changes:
			if !ok {
				return nil
			}
			quiet = c.After(debounce)
		case _, ok := <-events.errors: // The next poll makes up for what was lost.
			if !ok {
				return nil
			}
		case <-quiet:
			quiet = nil
			w.look()
		case <-ticker.C():
			// The directory itself may be new.
			if !watching {
				watching = events.add(dir) == nil
			}
			w.look()
		}
	}
}

// notifier reports changes in directories.
type notifier struct {
	changes <-chan fsnotify.Event
	errors  <-chan error
	add     func(dir string) error
	close   func() error
}

// newNotifier returns a notifier. Where others have used up the watches that a user of the
// node may have, it reports nothing: the file is polled, and the server starts.
func newNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if errors.Is(err, syscall.EMFILE) {
		return notifier{add: func(string) error { return err }, close: func() error { return nil }}, nil
	}
	if err != nil {
		return notifier{}, err
	}
	return notifier{changes: w.Events, errors: w.Errors, add: w.Add, close: w.Close}, nil
}

type watcher struct {
	path    string
	opts    Options
	changed func(*Config, error)
	// seen is the digest of what was read last, problem why it could not be.
	seen    []byte
	problem string
}

// look reads the file and calls changed if it is another one than before.
func (w *watcher) look() {
	opts := w.opts
	opts.File, opts.Dir = w.path, filepath.Dir(w.path)
	data, err := read(w.path)
	if err != nil {
		if err.Error() != w.problem {
			w.problem, w.seen = err.Error(), nil
			w.changed(nil, fmt.Errorf("the configuration cannot be read: %w", err))
		}
		return
	}
	digest := sha256.Sum256(data)
	if bytes.Equal(digest[:], w.seen) {
		return
	}
	w.seen, w.problem = digest[:], ""
	w.changed(Parse(data, opts))
}
