package works

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// Files are kubectl's flags that name files with manifests.
type Files struct {
	flags genericclioptions.FileNameFlags
}

// NewFiles returns the flags. As with clusteradm, folders are read with what is below
// them.
func NewFiles() Files {
	return Files{flags: genericclioptions.FileNameFlags{
		Usage: "Manifests:", Filenames: &[]string{}, Recursive: new(true),
	}}
}

// AddTo registers -f and -R.
func (f Files) AddTo(cmd *cobra.Command) {
	f.flags.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("filename").Usage = "Files and folders with manifests, or - for stdin"
	cmd.Flags().Lookup("recursive").Usage = "Read what is below the folders too"
}

// Given reports whether the user named any file.
func (f Files) Given() bool { return len(*f.flags.Filenames) > 0 }

// Read returns the manifests of all files, lists taken apart, in the order in which the
// files name them. No API server is asked what they mean: it is the managed clusters
// that serve their kinds.
func (f Files) Read() ([]workv1.Manifest, error) {
	options := f.flags.ToOptions()
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, &options).Flatten().ContinueOnError().Do().Infos()
	if err != nil {
		return nil, cli.Usagef("--filename: %v", err)
	}
	var manifests []workv1.Manifest
	for _, info := range infos {
		if info.Name == "" {
			return nil, cli.Usagef("--filename: %s: the %s has no metadata.name, which a manifest of a ManifestWork needs", info.Source, info.Object.GetObjectKind().GroupVersionKind().Kind)
		}
		raw, err := json.Marshal(info.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", info.ObjectName(), err)
		}
		manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	if len(manifests) == 0 {
		return nil, cli.Usagef("--filename: there are no manifests in %s", strings.Join(*f.flags.Filenames, ", "))
	}
	return manifests, nil
}
