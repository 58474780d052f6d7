package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/node"
)

func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	any1, one := path("any", 0o700), path("one", 0o700)
	images := node.Images{
		"example.com:5000/a/b": any1, "example.com:5000/a/b:v1": one,
		"gone": filepath.Join(dir, "gone"), "text": path("text", 0o600),
	}
	for reference, want := range map[string]string{
		"example.com:5000/a/b":                      any1,
		"example.com:5000/a/b:v2":                   any1,
		"example.com:5000/a/b:v1":                   one,
		"example.com:5000/a/b@sha256:0123456789abc": any1,
		"example.com:5000/a/b:v9@sha256:0123456789": any1,
	} {
		if got, err := images.Find(reference); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", reference, got, err, want)
		}
	}
	for reference, want := range map[string]string{
		"example.com/a/b": "known are: example.com:5000/a/b, example.com:5000/a/b:v1, gone, text",
		"gone:v1":         "no such file or directory",
		"text":            "text is no executable file",
	} {
		_, err := images.Find(reference)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", reference, err, want)
		}
		if unknown := errors.Is(err, node.ErrImageUnknown); unknown != strings.Contains(want, "known are") {
			t.Errorf("%s: unknown is %t", reference, unknown)
		}
	}
}

func TestAddressesAreReserved(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 5 {
		addresses, err := node.ReserveAddresses(t.Context(), "the same seed")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = addresses.Listener.Close() })
		ip := addresses.NodeIP()
		if seen[ip] || !strings.HasPrefix(ip, "127.") || !strings.HasSuffix(ip, ".1") {
			t.Errorf("%s, after %v", ip, seen)
		}
		seen[ip] = true
	}
}
