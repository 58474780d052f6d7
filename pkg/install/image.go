package install

import (
	"path"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
)

// image returns the image to run: what the user named, or what is live brought
// to this release, or our own.
func (w Workload) image(live string) string {
	switch {
	case w.Image != "":
		return w.Image
	case w.Registry != "":
		return strings.TrimSuffix(w.Registry, "/") + "/" + path.Base(buildinfo.DefaultImage())
	case live == "":
		return buildinfo.DefaultImage()
	}
	return upgraded(live)
}

// upgraded brings an image of ours to this release, wherever it is mirrored.
// A digest, a tag that is no release and an image of another repository stay: the
// user chose them.
func upgraded(live string) string {
	name, tag, ok := cutTag(live)
	if !ok || path.Base(name) != path.Base(buildinfo.Image) || !strings.HasPrefix(tag, "v") || strings.ContainsAny(tag, "@") {
		return live
	}
	return name + ":v" + buildinfo.Version
}

// cutTag takes the tag off; a port in the registry is none.
func cutTag(image string) (name, tag string, ok bool) {
	i := strings.LastIndex(image, ":")
	if i < 0 || strings.Contains(image[i:], "/") || strings.Contains(image, "@") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}

// DefaultImage returns the image that a new installation would run.
func (w Workload) DefaultImage() string { return w.image("") }
