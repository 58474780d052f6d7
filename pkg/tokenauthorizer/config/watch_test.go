package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/tokenauthorizer/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = "defaults: {audiences: [x]}\nclusters: [{name: first, issuer: i, keys: {jwksURI: https://a}}]\n"
	second = "defaults: {audiences: [x]}\nclusters: [{name: second, issuer: i, keys: {jwksURI: https://a}}]\n"
)

// outcome is what Watch told.
type outcome struct {
	name string
	err  error
}

// watch watches path until the test ends.
func watch(t *testing.T, path string) <-chan outcome {
	t.Helper()
	return watchBy(t, clock.RealClock{}, path)
}

func watchBy(t *testing.T, c clock.WithTicker, path string) <-chan outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan outcome, 16), make(chan error, 1)
	go func() {
		done <- config.Watch(ctx, c, path, config.Options{}, func(c *config.Config, err error) {
			o := outcome{err: err}
			if c != nil {
				o.name = c.Clusters[0].Name()
			}
			told <- o
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return told
}

func expect(t *testing.T, told <-chan outcome, check func(outcome) bool, what string) {
	t.Helper()
	select {
	case o := <-told:
		if !check(o) {
			t.Fatalf("told %+v, want %s", o, what)
		}
	case <-clock.RealClock{}.After(20 * time.Second):
		t.Fatalf("nothing is told, want %s", what)
	}
}

// expectWritten is expect for a file that is written in place: for a moment it is empty,
// which may be told as well, and before that what it was while several writes went by.
func expectWritten(t *testing.T, told <-chan outcome, name, passing string) {
	t.Helper()
	expect(t, told, func(o outcome) bool {
		for o.err != nil || o.name == passing {
			select {
			case o = <-told:
			case <-clock.RealClock{}.After(20 * time.Second):
				return false
			}
		}
		return o.name == name
	}, name)
}

func named(name string) func(outcome) bool {
	return func(o outcome) bool { return o.name == name && o.err == nil }
}

// TestWatchAConfigMap (tokensmith's design, "Future Enhancements" 2) does what a kubelet does: each version has a directory of
// its own, and one link is replaced.
func TestWatchAConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	swap := func(version, text string) {
		t.Helper()
		if err := errors.Join(
			os.Mkdir(filepath.Join(dir, version), 0o700),
			os.WriteFile(filepath.Join(dir, version, "clusters.yaml"), []byte(text), 0o600),
			os.Symlink(version, filepath.Join(dir, "..data_tmp")),
			os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
		); err != nil {
			t.Fatal(err)
		}
	}
	swap("..1", first)
	path := filepath.Join(dir, "clusters.yaml")
	if err := os.Symlink("..data/clusters.yaml", path); err != nil {
		t.Fatal(err)
	}
	told := watch(t, path)
	expect(t, told, named("first"), "the file as it is")
	swap("..2", second)
	expect(t, told, named("second"), "the new version")
	swap("..3", "clusters: {")
	expect(t, told, func(o outcome) bool { return o.err != nil && o.name == "" }, "an error")
	swap("..4", first)
	expect(t, told, named("first"), "the mended version")
}

// TestWatchAFile: editors write in place, or replace the file; it may be gone
// for a while.
func TestWatchAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told := watch(t, path)
	expect(t, told, func(o outcome) bool { return errors.Is(o.err, os.ErrNotExist) }, "that there is none")
	write(path, first)
	expectWritten(t, told, "first", "")
	write(path+".new", second)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	expect(t, told, named("second"), "its replacement")
	write(path, second)
	write(path, first)
	expectWritten(t, told, "first", "second")
}

// TestWatchWithoutEvents: where nothing reports changes, as in a directory that
// was not there, the file is looked at now and then.
func TestWatchWithoutEvents(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "clusters.yaml")
	now := clocktesting.NewFakeClock(time.Now()) //nolint:forbidigo // any time will do
	told := watchBy(t, now, path)
	expect(t, told, func(o outcome) bool { return errors.Is(o.err, os.ErrNotExist) }, "that there is none")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte(first), 0o600)); err != nil {
		t.Fatal(err)
	}
	await.Condition(t, 20*time.Second, "the ticker", func(context.Context) (bool, error) { return now.HasWaiters(), nil })
	now.Step(31 * time.Second)
	expect(t, told, named("first"), "the file")
}
