package node

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ErrImageUnknown says that no executable is mapped to an image.
var ErrImageUnknown = errors.New("image is not known to this local cluster")

// Images maps image references to executables. A key without tag and digest matches all
// of them; a key with one takes precedence.
type Images map[string]string

// Find returns the executable of an image. The error, which wraps
// ErrImageUnknown, lists the images that are known.
func (m Images) Find(reference string) (string, error) {
	path, ok := m[reference]
	if !ok {
		path, ok = m[repository(reference)]
	}
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
		return "", fmt.Errorf("%w: %s; known are: %s", ErrImageUnknown, reference, known)
	}
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("image %s: %w", reference, err)
	} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("image %s: %s is no executable file", reference, path)
	}
	return path, nil
}

// repository is a reference without its tag and digest.
func repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	colon := strings.LastIndexByte(reference, ':')
	if colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// arguments returns what follows argv[0] before expansion. inside is the path
// of the executable in the container.
func arguments(c *corev1.Container, inside string) ([]string, error) {
	if len(c.Command) == 0 {
		return c.Args, nil
	}
	if command := c.Command[0]; command != inside && command != inside[1:] {
		return nil, fmt.Errorf("the command %q is not in the image %s, which holds %s only", command, c.Image, inside)
	}
	return slices.Concat(c.Command[1:], c.Args), nil
}
