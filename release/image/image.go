package image

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// user runs the program. It is a number, because the image has no user database and a
// number is all that runAsNonRoot can check.
const user = "65532:65532"

// Description is what the annotations of an image say, besides what is read from the
// program.
type Description struct {
	Title, Summary, Version, Source, Licences string
}

// Content is what is packed for one platform.
type Content struct {
	Program program.Program
	// Licences are the licence texts of what is linked into the program.
	Licences []archive.File
	// SBOM is the bill of materials, an SPDX document.
	SBOM []byte
}

// Index packs one program, which was built for several platforms.
func Index(about Description, contents ...Content) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, content := range contents {
		image, err := pack(about, content)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", content.Program.Path, err)
		}
		platform := content.Program.Platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: platform.OS, Architecture: platform.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, about.annotations(contents[0].Program)).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("an index with annotations is no index")
	}
	return annotated, nil
}

// pack makes the image of one platform.
func pack(about Description, content Content) (v1.Image, error) {
	p := content.Program
	created := v1.Time{Time: p.Time}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.Platform.OS, Architecture: p.Platform.Arch, Created: created,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			// Kubeconfigs of clusters on EKS run the program as a credential plugin, by its name.
			Env:        []string{"PATH=/"},
			User:       user,
			Entrypoint: []string{"/" + p.File()},
			Labels:     about.annotations(p),
		},
	})
	if err != nil {
		return nil, err
	}
	// What changes least comes first, so that it is stored and pulled once.
	layers := []struct {
		what  string
		files []archive.File
	}{
		{"licenses", content.Licences},
		{p.File(), []archive.File{{Name: p.File(), Mode: archive.Executable, Path: p.Path}}},
	}
	for _, l := range layers {
		if len(l.files) == 0 {
			continue
		}
		layer, err := layerOf(p.Time, l.files)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: created, CreatedBy: "COPY " + l.what + " /" + l.what}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	annotated, ok := mutate.Annotations(image, about.annotations(p)).(v1.Image)
	if !ok {
		return nil, errors.New("an image with annotations is no image")
	}
	return annotated, nil
}

// layerOf is a layer with files.
func layerOf(date time.Time, files []archive.File) (v1.Layer, error) {
	var content bytes.Buffer
	if err := archive.Tar(&content, date, files); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// annotations are those that the OCI image specification defines. An image has them as
// labels, too, which is where container engines show them.
func (d Description) annotations(p program.Program) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       d.Title,
		"org.opencontainers.image.description": d.Summary,
		"org.opencontainers.image.version":     d.Version,
		"org.opencontainers.image.source":      d.Source,
		"org.opencontainers.image.licenses":    d.Licences,
		"org.opencontainers.image.revision":    p.Commit(),
		"org.opencontainers.image.created":     p.Time.Format(time.RFC3339),
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}
