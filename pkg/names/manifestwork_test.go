package names_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

func TestAppliedManifestWork(t *testing.T) {
	t.Parallel()
	const sum = "6bbf22eaa5b62d7344b92da47f31dfd5ebc8b0e03a8ea6f5228cd30ffafdc282"
	if got := names.AppliedManifestWork(names.HubHash("https://example.com:6443"), "app"); got != sum+"-app" {
		t.Errorf("got %s", got)
	}
	if names.HubHash("https://example.com:6443/") == names.HubHash("https://example.com:6443") {
		t.Error("another spelling of the address is the same hub")
	}
}
