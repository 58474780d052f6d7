package buildinfo_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
)

// TestVersion: the version is one of semantic versioning, and that of the image.
func TestVersion(t *testing.T) {
	t.Parallel()
	parsed, err := version.ParseSemantic(buildinfo.Version)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := buildinfo.DefaultImage(), buildinfo.LocalRepository+":v"+parsed.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
