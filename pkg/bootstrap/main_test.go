package bootstrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// public is an authority that is among the system's roots, for this process only.
var public authority

func TestMain(m *testing.M) {
	os.Exit(withPublic(m.Run))
}

// withPublic runs the tests with public among the system's roots, which a process
// reads once.
func withPublic(tests func() int) int {
	dir, err := os.MkdirTemp("", "roots-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		public, err = makeAuthority("public")
	}
	file := filepath.Join(dir, "ca.crt")
	if err == nil {
		err = os.WriteFile(file, public.pem, 0o600)
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "an authority among the system's roots:", err)
		return 1
	}
	return tests()
}
