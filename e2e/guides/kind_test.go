//go:build kind

package guides_test

import "testing"

// TestKind creates kind clusters of its own, with Docker and the images of this tree. make
// e2e-kind runs it.
func TestKind(t *testing.T) {
	t.Parallel()
	follow(t, "guides/kind.md")
}
