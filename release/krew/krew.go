package krew

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/krew/pkg/constants"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/release/asset"
)

// Plugin is the name of the plugin, and its manifest's file without the extension.
const Plugin = "ocm"

// File is the name of the manifest: krew takes the name of the plugin from it.
const File = Plugin + constants.ManifestExtension

// unsupported is an architecture of the release that krew has no builds for: the index
// refuses a manifest that names it.
const unsupported = "s390x"

// Manifest describes the plugin of a release.
func Manifest(release asset.Release) ([]byte, error) {
	plugin := index.Plugin{
		TypeMeta:   metav1.TypeMeta{APIVersion: constants.CurrentAPIVersion, Kind: constants.PluginKind},
		ObjectMeta: metav1.ObjectMeta{Name: Plugin},
		Spec: index.PluginSpec{
			Version:          release.Version,
			Homepage:         release.Source,
			ShortDescription: "Manage cluster, add-on and workload identities",
			Description: `Manage cluster, add-on and workload identities for a fleet of Kubernetes
clusters, on the APIs of Open Cluster Management. The controllers that the
plugin installs run from a container image of the same version.
`,
		},
	}
	for _, archive := range release.Archives {
		platform := archive.Program.Platform
		if platform.Arch == unsupported {
			continue
		}
		binary := archive.Program.File()
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, index.Platform{
			URI:      release.URL(archive.File),
			Sha256:   archive.SHA256,
			Bin:      binary,
			Files:    []index.FileOperation{{From: binary, To: "."}, {From: "LICENSE", To: "."}, {From: "licenses", To: "."}},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"os": platform.OS, "arch": platform.Arch}},
		})
	}
	return yaml.Marshal(plugin)
}
