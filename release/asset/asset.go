package asset

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// Archive is an archive with the program of one platform.
type Archive struct {
	Program program.Program
	File    string
	SHA256  string
}

// Release is what package managers have to know.
type Release struct {
	// Version is the version, with a leading v, and Source the address of the project.
	Version, Source string
	Archives        []Archive
}

// URL is where a file of the release is published.
func (r Release) URL(file string) string {
	return fmt.Sprintf("%s/releases/download/%s/%s", r.Source, r.Version, file)
}
