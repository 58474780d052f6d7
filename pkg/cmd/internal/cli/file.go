package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/atomicfile"
)

// WriteSecretFile writes a file that only its owner can read, all of it or
// nothing. An existing file with another mode is replaced.
func WriteSecretFile(path string, data []byte) error {
	if err := atomicfile.Write(path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ReadSecret reads a secret from a file, or from In when the name is "-".
func (e Env) ReadSecret(path string) (string, error) {
	var (
		data []byte
		err  error
	)
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(e.In, 1<<20))
	} else {
		data, err = ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// ReadFile reads a file that the user named.
func ReadFile(path string) ([]byte, error) {
	return os.ReadFile(path)
}
