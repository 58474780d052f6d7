package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/local/controlplane"
)

// leaveOut skips a test that needs what takes long, with -short.
func leaveOut(tb testing.TB, what string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("needs %s, which -short leaves out", what)
	}
}

// Localkube is the path of the localkube binary, for tests that start control
// planes by other means.
func Localkube(tb testing.TB) string {
	tb.Helper()
	leaveOut(tb, "localkube")
	path, err := FindLocalkube()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// FindLocalkube is the path of the localkube binary: LOCALKUBE, or what make builds.
func FindLocalkube() (string, error) {
	if path := os.Getenv("LOCALKUBE"); path != "" {
		return controlplane.FindBinary(path)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path, err := exec.LookPath(filepath.Join(root, "bin", "localkube"))
	if err != nil {
		err = fmt.Errorf("%w; build it with: make localkube", err)
	}
	return path, err
}

// Program is the path of a program of others that only tests run, such as
// aws-iam-authenticator. It is built unless it is there: see scripts/build-test-program.sh.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	leaveOut(tb, name)
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	build := exec.CommandContext(tb.Context(), filepath.Join(root, "scripts", "build-test-program.sh"), name) //nolint:gosec // a script of ours
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", build, err, out)
	}
	return filepath.Join(root, "bin", name)
}

// moduleRoot is the root of the module that the test belongs to.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root, nil
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("%s is in no Go module: %w", dir, errors.ErrUnsupported)
		}
	}
}
