package debian_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/release/debian"
)

// TestDebianVersion: what comes before a release is also before it for dpkg, as
// dpkg --compare-versions says.
func TestDebianVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"0.2.0":      "0.2.0",
		"0.2.0-rc.1": "0.2.0~rc.1",
	} {
		if got := (debian.Package{Version: version}).DebianVersion(); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}
