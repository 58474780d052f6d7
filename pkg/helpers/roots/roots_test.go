package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/roots"
)

// TestSystemHasRoots: only a bundle that is not empty is enough, and no variable of the user.
func TestSystemHasRoots(t *testing.T) {
	t.Parallel()
	full, empty := filepath.Join(t.TempDir(), "full"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(full, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, variable string
		want           bool
	}{
		"a bundle":                         {file: full, want: true},
		"an empty bundle":                  {file: empty},
		"a directory":                      {file: t.TempDir()},
		"nothing, as in our image":         {file: filepath.Join(t.TempDir(), "none")},
		"a bundle, and a file of the user": {file: full, variable: "SSL_CERT_FILE"},
		"a bundle, and a directory":        {file: full, variable: "SSL_CERT_DIR"},
	} {
		getenv := func(name string) string {
			if name == tc.variable {
				return "/elsewhere"
			}
			return ""
		}
		stat := func(path string) (os.FileInfo, error) {
			if path == roots.Bundle() {
				return os.Stat(tc.file)
			}
			return nil, os.ErrNotExist
		}
		if got := roots.SystemHasRoots(getenv, stat); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPublic: every root of the module can be read.
func TestPublic(t *testing.T) {
	t.Parallel()
	pool, err := roots.Public()
	if err != nil || len(pool.Subjects()) < 50 { //nolint:staticcheck // It is no pool of the system.
		t.Errorf("%d roots, %v", len(pool.Subjects()), err) //nolint:staticcheck // see above
	}
}
