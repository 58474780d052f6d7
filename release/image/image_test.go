package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/image"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/programtest"
	"github.com/kubectl-ocm/kubectl-ocm/release/sbom"
)

// TestRegistry: what a registry gives back is one image for each platform, with the
// program and nothing else.
func TestRegistry(t *testing.T) {
	host, config := serve(t)
	t.Setenv("DOCKER_CONFIG", config)
	programs := programtest.Build(t, platforms()...)
	reference := tag(t, host+"/test/hello:v1")
	contents := contents(programs)
	pushed := index(t, contents)
	if err := image.Push(t.Context(), reference, pushed, contents...); err != nil {
		t.Fatal(err)
	}

	pulled, err := remote.Index(reference, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if got, want := digest(t, pulled), digest(t, pushed); got != want {
		t.Errorf("the registry has %s, pushed was %s", got, want)
	}
	checkIndex(t, pulled, programs)
	checkReferrers(t, reference, pulled, contents)
}

// TestPushWithoutCredentials: the registry refuses who has none.
func TestPushWithoutCredentials(t *testing.T) {
	host, _ := serve(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if err := image.Push(t.Context(), tag(t, host+"/test/hello:v1"), index(t, contents(programtest.Build(t, platforms()...)))); err == nil {
		t.Error("pushed without a password")
	}
}

// TestArchive: the archive has the same index under the names that containerd and
// others look for.
func TestArchive(t *testing.T) {
	t.Parallel()
	programs := programtest.Build(t, platforms()...)
	want := index(t, contents(programs))
	for _, test := range []struct{ name, containerd, tag string }{
		{name: "kubectl-ocm/hello:v1", containerd: "docker.io/kubectl-ocm/hello:v1", tag: "v1"},
		{name: "kubectl-ocm/hello", containerd: "docker.io/kubectl-ocm/hello:latest", tag: "latest"},
		{name: "localhost/hello:v1", containerd: "localhost/hello:v1", tag: "v1"},
		{name: "registry.example.com/ocm:v2", containerd: "registry.example.com/ocm:v2", tag: "v2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, descriptor := unpack(t, bytes.NewReader(written(t, tag(t, test.name), want)))
			if err := validate.Index(got); err != nil {
				t.Error(err)
			}
			if digest(t, got) != digest(t, want) {
				t.Errorf("the archive has %s, not %s", digest(t, got), digest(t, want))
			}
			names := map[string]string{"io.containerd.image.name": test.containerd, "org.opencontainers.image.ref.name": test.tag}
			if diff := cmp.Diff(names, descriptor.Annotations); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			checkIndex(t, got, programs)
		})
	}
}

// TestReproducible: two builds from two directories give the same bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	reference := tag(t, "kubectl-ocm/hello:v1")
	first := written(t, reference, index(t, contents(programtest.Build(t, platforms()...))))
	second := written(t, reference, index(t, contents(programtest.Build(t, platforms()...))))
	if !bytes.Equal(first, second) {
		t.Error("two archives of one commit differ")
	}
}

func platforms() []program.Platform {
	return []program.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
}

func contents(programs []program.Program) []image.Content {
	var all []image.Content
	for _, p := range programs {
		all = append(all, image.Content{
			Program: p, SBOM: []byte(`{"for": "` + p.Platform.String() + `"}`),
			Licences: []archive.File{{Name: "licenses/std/LICENSE", Mode: archive.Plain, Data: []byte("free")}},
		})
	}
	return all
}

func index(t *testing.T, contents []image.Content) v1.ImageIndex {
	t.Helper()
	built, err := image.Index(image.Description{
		Title: "hello", Summary: "Says hello", Version: "v1", Source: "https://example.com/hello", Licences: "Apache-2.0",
	}, contents...)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func checkIndex(t *testing.T, got v1.ImageIndex, programs []program.Program) {
	t.Helper()
	manifest, err := got.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(annotations(programs[0]), manifest.Annotations); diff != "" {
		t.Errorf("annotations of the index (-want +got):\n%s", diff)
	}
	if len(manifest.Manifests) != len(programs) {
		t.Fatalf("got %d images, want %d", len(manifest.Manifests), len(programs))
	}
	for i, p := range programs {
		descriptor := manifest.Manifests[i]
		if descriptor.Platform.String() != p.Platform.String() {
			t.Errorf("image %d is for %s, not for %s", i, descriptor.Platform, p.Platform)
		}
		child, err := got.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, child, p)
	}
}

func checkImage(t *testing.T, got v1.Image, p program.Program) {
	t.Helper()
	file, err := got.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{Env: []string{"PATH=/"}, User: "65532:65532", Entrypoint: []string{"/hello"}, Labels: annotations(p)}
	if diff := cmp.Diff(want, file.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if file.OS != p.Platform.OS || file.Architecture != p.Platform.Arch || !file.Created.Equal(programtest.Committed) {
		t.Errorf("the image is for %s/%s, of %s", file.OS, file.Architecture, file.Created)
	}
	manifest, err := got.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(annotations(p), manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	checkFiles(t, mutate.Extract(got), p)
}

// checkFiles expects the program and the licences, which root owns, and no other file.
func checkFiles(t *testing.T, content io.ReadCloser, p program.Program) {
	t.Helper()
	defer content.Close()
	want, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	type file struct {
		Mode     int64
		UID, GID int
		Date     time.Time
		Content  string
	}
	got := map[string]file{}
	in := tar.NewReader(content)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = file{Mode: header.Mode, UID: header.Uid, GID: header.Gid, Date: header.ModTime.UTC(), Content: string(text)}
	}
	if diff := cmp.Diff(map[string]file{
		"hello":                {Mode: 0o755, Date: programtest.Committed, Content: string(want)},
		"licenses/std/LICENSE": {Mode: 0o644, Date: programtest.Committed, Content: "free"},
	}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// checkReferrers expects the bill of materials of each image to refer to it.
func checkReferrers(t *testing.T, reference name.Reference, index v1.ImageIndex, contents []image.Content) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	options := []remote.Option{remote.WithContext(t.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for i, content := range contents {
		referrers, err := remote.Referrers(reference.Context().Digest(manifest.Manifests[i].Digest.String()), options...)
		if err != nil {
			t.Fatal(err)
		}
		found, err := referrers.IndexManifest()
		if err != nil || len(found.Manifests) != 1 || found.Manifests[0].ArtifactType != sbom.MediaType {
			t.Fatalf("%s: got %+v, %v", content.Program.Platform, found, err)
		}
		document, err := remote.Image(reference.Context().Digest(found.Manifests[0].Digest.String()), options...)
		if err != nil {
			t.Fatal(err)
		}
		if got := onlyLayer(t, document); !bytes.Equal(got, content.SBOM) {
			t.Errorf("got %s, want %s", got, content.SBOM)
		}
	}
}

// onlyLayer is the content of the one layer of an artifact.
func onlyLayer(t *testing.T, artifact v1.Image) []byte {
	t.Helper()
	layers, err := artifact.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func annotations(p program.Program) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "hello",
		"org.opencontainers.image.description": "Says hello",
		"org.opencontainers.image.version":     "v1",
		"org.opencontainers.image.source":      "https://example.com/hello",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    p.Revision,
		"org.opencontainers.image.created":     programtest.Committed.Format(time.RFC3339),
	}
}

func written(t *testing.T, reference name.Reference, built v1.ImageIndex) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := image.Archive(&out, reference, built, programtest.Committed); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// unpack reads an archive as an OCI image layout, and returns its one index.
func unpack(t *testing.T, archive io.Reader) (v1.ImageIndex, v1.Descriptor) {
	t.Helper()
	dir := t.TempDir()
	extract(t, dir, tar.NewReader(archive))
	content, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := content.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("got %+v, %v", manifest, err)
	}
	found, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return found, manifest.Manifests[0]
}

func tag(t *testing.T, text string) name.Reference {
	t.Helper()
	reference, err := image.Name(text)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func digest(t *testing.T, of v1.ImageIndex) string {
	t.Helper()
	hash, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func extract(t *testing.T, dir string, in *tar.Reader) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var previous string
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if slices.Compare([]byte(previous), []byte(header.Name)) >= 0 {
			t.Errorf("%s is after %s", header.Name, previous)
		}
		previous = header.Name
		unpackFile(t, root, header.Name, in)
	}
}

func unpackFile(t *testing.T, root *os.Root, file string, in io.Reader) {
	t.Helper()
	content, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.MkdirAll(path.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
