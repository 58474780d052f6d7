package install

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
)

// ImageOver returns the image to run: what the user named, or what is live brought
// to this release, or our own.
func (w Workload) ImageOver(live string) string {
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

// upgraded replaces the tag of an image of ours by this release, wherever it is mirrored.
// A digest, a tag that is no release and an image of another repository stay: the
// user chose them.
func upgraded(live string) string {
	name, tag, ok := cutTag(live)
	ours := []string{path.Base(buildinfo.LocalRepository), path.Base(buildinfo.Repository())}
	if !ok || !slices.Contains(ours, path.Base(name)) || !strings.HasPrefix(tag, "v") || strings.ContainsAny(tag, "@") {
		return live
	}
	return name + ":v" + buildinfo.Version
}

// cutTag removes the tag; a port of the registry is not a tag.
func cutTag(image string) (name, tag string, ok bool) {
	i := strings.LastIndex(image, ":")
	if i < 0 || strings.Contains(image[i:], "/") || strings.Contains(image, "@") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}

// DefaultImage returns the image that a new installation would run.
func (w Workload) DefaultImage() string { return w.ImageOver("") }

// CheckImage refuses the image of a build that none was published for, where nodes would
// have to pull it. A user who has loaded it names it, and what is live stays.
func (w Workload) CheckImage(f Facts, image, live string) []Finding {
	if buildinfo.Published() || !f.Pulls || w.Image != "" || image == live || image != buildinfo.DefaultImage() {
		return nil
	}
	return []Finding{{
		Check: CheckImage, Severity: Fatal,
		Message: "no container image was published for this build of the command",
		Try: fmt.Sprintf("build the image with \"make image\" and push it, and name it with --image=REGISTRY/NAME:TAG; "+
			"or load image.tar into every node, as with \"kind load image-archive\", and add --image=%s", image),
	}}
}

// localRuntime is the container runtime of local clusters, which run executables for images.
const localRuntime = "local://"

// pullsImages reports whether the cluster has nodes that pull images. It is false where there
// are no nodes yet, or they may not be read.
func pullsImages(ctx context.Context, c client.Client) (bool, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, client.Limit(1)); err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("nodes: %w", err)
	}
	return slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		return !strings.HasPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, localRuntime)
	}), nil
}
