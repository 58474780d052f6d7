package nodes_test

import (
	"strings"
	"testing"
)

// missing is an image that no registry has.
const missing = "registry.example.com/kubectl-ocm/missing:v1"

// TestImagePullError changes the agent to an image that cannot be pulled, and back.
func TestImagePullError(t *testing.T) {
	awaitAvailable(t, "True")
	image := strings.TrimSpace(must(t, "kubectl-ocm", "images", "-o", "jsonpath={.items[0].image}"))
	restore(t, joinCommand("--image", image)...)
	out := wantFailure(t, joinCommand("--image", missing, "--timeout", "60s")...)
	if !strings.Contains(out, missing) || !strings.Contains(out, "cannot pull the image") {
		t.Errorf("join does not tell which image cannot be pulled:\n%s", out)
	}
	// What ran goes on.
	awaitAvailable(t, "True")
}
