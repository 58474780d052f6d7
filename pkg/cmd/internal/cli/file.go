package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WriteSecretFile writes a file that only its owner can read, all of it or
// nothing. A file with another mode that is there already is replaced.
func WriteSecretFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	if _, err := temp.Write(data); err != nil {
		_ = temp.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(temp.Name(), path)
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
