package krew_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/release/asset"
	"github.com/kubectl-ocm/kubectl-ocm/release/krew"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// TestPlatforms: the manifest leaves out what the index of krew refuses.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	var release asset.Release
	for _, arch := range []string{"amd64", "s390x", "ppc64le"} {
		release.Archives = append(release.Archives, asset.Archive{Program: program.Program{Platform: program.Platform{OS: "linux", Arch: arch}}})
	}
	data, err := krew.Manifest(release)
	if err != nil {
		t.Fatal(err)
	}
	var plugin index.Plugin
	if err := yaml.Unmarshal(data, &plugin); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, platform := range plugin.Spec.Platforms {
		got = append(got, platform.Selector.MatchLabels["arch"])
	}
	if want := []string{"amd64", "ppc64le"}; !slices.Equal(got, want) {
		t.Errorf("platforms %v, want %v", got, want)
	}
}
