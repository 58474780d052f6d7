package buildinfo

import (
	"cmp"
	"runtime/debug"
)

// Version is the release this tree is, without a leading v. It is a constant,
// so that two builds of one tree are the same to the byte.
const Version = "0.1.0"

// LocalRepository is the image without a tag of a build that no image was published for.
// No registry has it: local clusters run the program in its place, and other nodes need
// it loaded.
const LocalRepository = "localhost/kubectl-ocm"

// repository is the name of the published image without a tag. The build of a release
// sets it, with IMAGE_REPOSITORY of the Makefile.
var repository string //nolint:gochecknoglobals // The linker sets variables only.

// Published reports whether an image was published for this build.
func Published() bool { return repository != "" }

// Repository is the name of the image without a tag.
func Repository() string { return cmp.Or(repository, LocalRepository) }

// DefaultImage is the image that this release's manifests run unless the user
// names another one.
func DefaultImage() string { return Repository() + ":v" + Version }

// ReleasePage is where the files of a release are, whose version has no leading v.
func ReleasePage(version string) string {
	return "https://github.com/kubectl-ocm/kubectl-ocm/releases/tag/v" + version
}

// Commit is the commit the binary was built from, or "" when the build had no
// version control information.
func Commit() string { return setting("vcs.revision") }

// Date is when that commit was made, by RFC 3339, or "". When the binary was built is
// recorded nowhere, or two builds of one commit would differ.
func Date() string { return setting("vcs.time") }

// setting reads a setting of the build.
func setting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
