package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/sbom"
)

// Archive writes an index as an OCI image layout in a tar archive, which containerd,
// Docker, Podman and skopeo read. It is the one format of these that holds several
// platforms; docker save's own holds one.
func Archive(w io.Writer, reference name.Reference, index v1.ImageIndex, date time.Time) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(names(reference))); err != nil {
		return err
	}
	files, err := archive.Files(dir)
	if err != nil {
		return err
	}
	return archive.Tar(w, date, files)
}

// Name parses the name of an image, which gets the tag latest when it has none. A name
// without a registry stays without one.
func Name(text string) (name.Reference, error) {
	return name.NewTag(text, name.WithDefaultRegistry(""))
}

// names are the annotations by which readers of an archive find the image's name:
// containerd reads the first, which has to be what kubelets ask for; skopeo and Podman
// the second.
func names(reference name.Reference) map[string]string {
	repository := reference.Context()
	host := repository.RegistryStr()
	switch {
	case strings.HasPrefix(repository.RepositoryStr(), "localhost/"): // A host without a dot, to all but this parser.
	case host == "" || host == name.DefaultRegistry:
		host = "docker.io/"
	default:
		host += "/"
	}
	return map[string]string{
		"io.containerd.image.name":          host + repository.RepositoryStr() + ":" + reference.Identifier(),
		"org.opencontainers.image.ref.name": reference.Identifier(),
	}
}

// Push writes an index to the registry of its name, with the credentials that Docker's
// or Podman's configuration of the user has for it. The bill of materials of each
// platform refers to its image there.
func Push(ctx context.Context, reference name.Reference, index v1.ImageIndex, contents ...Content) error {
	repository := reference.Context()
	if repository.RegistryStr() == "" {
		return fmt.Errorf("%s names no registry; name it as registry.example.com/%s", reference, reference)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(reference, index, options...); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for i, content := range contents {
		if len(content.SBOM) == 0 {
			continue
		}
		document, err := refer(manifest.Manifests[i], content.SBOM)
		if err != nil {
			return err
		}
		digest, err := document.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(repository.Digest(digest.String()), document, options...); err != nil {
			return fmt.Errorf("pushing the bill of materials of %s for %s: %w", reference, content.Program.Platform, err)
		}
	}
	return nil
}

// refer makes an artifact of a bill of materials, with an image for its subject. Tools
// find it by the type of its configuration, which has no content.
func refer(subject v1.Descriptor, document []byte) (v1.Image, error) {
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbom.MediaType)
	artifact, err := mutate.AppendLayers(artifact, static.NewLayer(document, sbom.MediaType))
	if err != nil {
		return nil, err
	}
	referring, ok := mutate.Subject(artifact, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}).(v1.Image)
	if !ok {
		return nil, errors.New("an artifact with a subject is no artifact")
	}
	return referring, nil
}
