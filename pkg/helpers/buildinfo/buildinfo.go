package buildinfo

import "runtime/debug"

// Version is the release this tree is, without a leading v. It is a constant,
// so that two builds of one tree are the same to the byte.
const Version = "0.1.0"

// Image is the name of our image without a tag.
const Image = "kubectl-ocm/kubectl-ocm"

// DefaultImage is the image that this release's manifests run unless the user
// names another one.
func DefaultImage() string { return Image + ":v" + Version }

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
