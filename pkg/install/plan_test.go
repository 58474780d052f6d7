package install_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install"
)

func TestImage(t *testing.T) {
	t.Parallel()
	ours := "kubectl-ocm:v" + buildinfo.Version
	for _, tc := range []struct {
		name  string
		value install.Workload
		live  string
		want  string
	}{
		{name: "a new installation", want: buildinfo.DefaultImage()},
		{name: "an image", value: install.Workload{Image: "a/b:c"}, live: "x/y:z", want: "a/b:c"},
		{name: "a registry", value: install.Workload{Registry: "r:5000/m/"}, want: "r:5000/m/" + ours},
		{name: "an older release is upgraded", live: "kubectl-ocm/kubectl-ocm:v0.0.1", want: "kubectl-ocm/" + ours},
		{name: "where it is mirrored", live: "r:5000/m/kubectl-ocm:v0.0.1", want: "r:5000/m/" + ours},
		{name: "a digest stays", live: "r/kubectl-ocm@sha256:00", want: "r/kubectl-ocm@sha256:00"},
		{name: "a tag of one's own stays", live: "r/kubectl-ocm:mine", want: "r/kubectl-ocm:mine"},
		{name: "somebody else's image stays", live: "registry.example.com/ocm/registration:v1.3.1", want: "registry.example.com/ocm/registration:v1.3.1"},
		{name: "a port is no tag", live: "r:5000/kubectl-ocm", want: "r:5000/kubectl-ocm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.value.ImageOver(tc.live); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSkippedChecksOnlyWarn(t *testing.T) {
	t.Parallel()
	findings := []install.Finding{
		{Check: "a", Severity: install.Fatal}, {Check: "b", Severity: install.Fatal}, {Check: "c", Severity: install.Warning},
	}
	warnings, err := install.Sift(findings, []string{"a", "b"})
	if err != nil || len(warnings) != 3 {
		t.Errorf("%v, %v", warnings, err)
	}
	warnings, err = install.Sift(findings, []string{"a"})
	if err == nil || len(warnings) != 2 {
		t.Errorf("%v, %v", warnings, err)
	}
}
