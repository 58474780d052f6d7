package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/asset"
	"github.com/kubectl-ocm/kubectl-ocm/release/changelog"
	"github.com/kubectl-ocm/kubectl-ocm/release/debian"
	"github.com/kubectl-ocm/kubectl-ocm/release/homebrew"
	"github.com/kubectl-ocm/kubectl-ocm/release/krew"
	"github.com/kubectl-ocm/kubectl-ocm/release/licences"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/sbom"
)

const (
	// product is what is released, and licence its licence.
	product = "kubectl-ocm"
	licence = "Apache-2.0"
	// root is the directory of the repository.
	root = ".."
)

// item is a program of the release, with what is packed next to it.
type item struct {
	// name is that of its packages and archives.
	name    string
	program string
	// module is the directory of its module.
	module string
	// debian describes its package.
	debian debian.Package
	// extras are further files of its archives.
	extras func(program.Program) ([]archive.File, error)
}

// command is the plugin, which is also the controllers.
func (d *dist) command() item {
	return item{
		name: product, program: product, module: root, extras: d.pagesOf,
		debian: debian.Package{
			Summary: "identities for a fleet of Kubernetes clusters",
			Description: ` Manages cluster, add-on and workload identities for a fleet of Kubernetes
 clusters, on the APIs of Open Cluster Management. It is the kubectl plugin
 "kubectl ocm" and has the commands and flags of clusteradm.`,
			Relations: []string{"Enhances: kubectl", "Suggests: " + product + "-localkube"},
			Programs:  "usr/bin/",
		},
	}
}

// controlPlane is the control plane of local clusters, which run on Linux only.
func controlPlane() item {
	return item{
		name: product + "-localkube", program: "localkube", module: filepath.Join(root, "cmd/localkube"),
		extras: func(program.Program) ([]archive.File, error) { return nil, nil },
		debian: debian.Package{
			Summary: "Kubernetes control plane for local clusters of kubectl-ocm",
			Description: ` One program that is etcd, kube-apiserver, kube-controller-manager,
 kube-scheduler and kubectl. "kubectl ocm local up" runs clusters with it, to
 try the product out and to test add-ons.`,
			Relations: []string{"Enhances: " + product},
			Programs:  "usr/libexec/" + product + "/",
		},
	}
}

// localPlatforms are the platforms of the control plane of local clusters.
const localPlatforms = "linux/amd64,linux/arm64"

// dist is a release that is being made.
type dist struct {
	dir, platforms string
	// pages is the directory of the manual pages and completions.
	pages string
	// image is the archive of the container image, and repository its name without a tag,
	// which is compiled into the programs.
	image, repository string
	maintainer        string
	tag               string
	out               string
	release           asset.Release
}

func parseDist(args []string) (*dist, error) {
	var d dist
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&d.dir, "dir", "", "Directory of the programs, which are OS_ARCH/PROGRAM in it")
	flags.StringVar(&d.platforms, "platforms", "", "Platforms to pack")
	flags.StringVar(&d.pages, "pages", "", "Directory of the manual pages and completions")
	flags.StringVar(&d.image, "image", "", "Archive of the container image")
	flags.StringVar(&d.repository, "repository", "", "Name of the container image without a tag, as it is compiled into the programs")
	flags.StringVar(&d.maintainer, "maintainer", "", "Name and address of who maintains the packages, as NAME <ADDRESS>")
	flags.StringVar(&d.release.Source, "source", "", "Address of the project")
	flags.StringVar(&d.release.Version, "version", "", "Version of the program, with a leading v")
	flags.StringVar(&d.tag, "tag", "", "Tag of the commit, if it has one")
	flags.StringVar(&d.out, "output", "", "Directory to write to; what is in it is deleted")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return &d, d.check()
}

// check refuses what cannot be released.
func (d *dist) check() error {
	if slices.Contains([]string{d.dir, d.platforms, d.pages, d.image, d.release.Version, d.release.Source, d.out}, "") {
		return errors.New("dist needs -dir, -platforms, -pages, -image, -source, -version and -output")
	}
	if _, err := mail.ParseAddress(d.maintainer); err != nil {
		return fmt.Errorf("-maintainer %q is no name with an address: %w", d.maintainer, err)
	}
	if d.tag != "" && d.tag != d.release.Version {
		return fmt.Errorf("the commit has the tag %s, and the program is %s; tag the commit whose version it is", d.tag, d.release.Version)
	}
	if d.tag != "" && d.repository == "" {
		return errors.New("a release names its container image; set IMAGE_REPOSITORY to the name without a tag, as in registry.example.com/kubectl-ocm")
	}
	return nil
}

// makeDist writes the files of a release.
func makeDist(ctx context.Context, args []string) error {
	d, err := parseDist(args)
	if err != nil {
		return err
	}
	// Users of every machine read what is published, also when this user has a stricter umask.
	syscall.Umask(0o022)
	if err := os.RemoveAll(d.out); err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil { //nolint:gosec // What is published is read by everybody.
		return err
	}
	commands, err := d.packAll(ctx, d.command(), d.platforms)
	if err != nil {
		return err
	}
	d.release.Archives = commands
	if _, err := d.packAll(ctx, controlPlane(), localPlatforms); err != nil {
		return err
	}
	if err := d.saveImage(); err != nil {
		return err
	}
	if err := d.describe(); err != nil {
		return err
	}
	return d.sum()
}

// packAll packs an item for each of the platforms, and returns the archives.
func (d *dist) packAll(ctx context.Context, of item, platforms string) ([]asset.Archive, error) {
	programs, err := openAll(d.dir, of.program, platforms)
	if err != nil {
		return nil, err
	}
	var archives []asset.Archive
	for _, p := range programs {
		packed, err := d.pack(ctx, of, p)
		if err != nil {
			return nil, fmt.Errorf("packing %s for %s: %w", p.Name, p.Platform, err)
		}
		archives = append(archives, packed)
	}
	return archives, nil
}

// pack writes what there is for one platform: the archive, the bill of materials, and
// for Linux the Debian package.
func (d *dist) pack(ctx context.Context, of item, p program.Program) (asset.Archive, error) {
	if p.Revision == "" || p.Modified {
		return asset.Archive{}, errors.New("it is not built from a commit; commit what has changed and build it again")
	}
	modules, err := licences.Collect(ctx, of.module, p)
	if err != nil {
		return asset.Archive{}, err
	}
	files, err := of.files(p, modules)
	if err != nil {
		return asset.Archive{}, err
	}
	name := fmt.Sprintf("%s_%s_%s_%s", of.name, d.release.Version, p.Platform.OS, p.Platform.Arch)
	packed, err := d.archive(name, p, files)
	if err != nil {
		return asset.Archive{}, err
	}
	document, err := sbom.Write(p, d.release.Version, licence, modules)
	if err != nil {
		return asset.Archive{}, err
	}
	if err := d.write(name+".spdx.json", document); err != nil {
		return asset.Archive{}, err
	}
	if p.Platform.OS != "linux" {
		return packed, nil
	}
	deb := of.debian
	deb.Name, deb.Program, deb.Files = of.name, p, files
	deb.Version, deb.Homepage = strings.TrimPrefix(d.release.Version, "v"), d.release.Source
	deb.Maintainer = d.maintainer
	return packed, deb.Build(ctx, d.out)
}

// files are the files of an archive.
func (i item) files(p program.Program, modules []licences.Module) ([]archive.File, error) {
	files, err := i.extras(p)
	return append(slices.Concat(files, licences.Texts(modules)),
		archive.File{Name: "LICENSE", Mode: archive.Plain, Path: filepath.Join(root, "LICENSE")},
		archive.File{Name: p.File(), Mode: archive.Executable, Path: p.Path},
	), err
}

// pagesOf are the manual pages and completions of the command.
func (d *dist) pagesOf(p program.Program) ([]archive.File, error) {
	files, err := archive.Files(d.pages)
	return append(files, completer(p.Platform)), err
}

// completer is the program that kubectl asks for completions of the plugin's arguments.
func completer(platform program.Platform) archive.File {
	if platform.OS == "windows" {
		return archive.File{Name: "kubectl_complete-ocm.bat", Mode: archive.Executable, Data: []byte("@kubectl-ocm.exe __complete %*\r\n")}
	}
	return archive.File{Name: "kubectl_complete-ocm", Mode: archive.Executable, Data: []byte("#!/bin/sh\nexec kubectl-ocm __complete \"$@\"\n")}
}

// archive writes the archive in the format that is usual on its system.
func (d *dist) archive(name string, p program.Program, files []archive.File) (asset.Archive, error) {
	write, extension := archive.TarGzip, ".tar.gz"
	if p.Platform.OS == "windows" {
		write, extension = archive.Zip, ".zip"
	}
	name += extension
	var content bytes.Buffer
	if err := write(&content, p.Time, files); err != nil {
		return asset.Archive{}, err
	}
	packed := asset.Archive{Program: p, File: name, SHA256: fmt.Sprintf("%x", sha256.Sum256(content.Bytes()))}
	return packed, d.write(name, content.Bytes())
}

// saveImage writes the archive of the container image.
func (d *dist) saveImage() error {
	name := fmt.Sprintf("%s_%s_image.tar", product, d.release.Version)
	return archive.File{Name: name, Mode: archive.Plain, Path: d.image}.Save(d.out)
}

// describe writes what package managers and users read about the release.
func (d *dist) describe() error {
	manifest, err := krew.Manifest(d.release)
	if err != nil {
		return err
	}
	if err := d.write(krew.File, manifest); err != nil {
		return err
	}
	formula, err := homebrew.Formula(d.release)
	if err != nil {
		return err
	}
	if err := d.write(homebrew.File, formula); err != nil {
		return err
	}
	return d.notes()
}

// notes writes what is new, with links that work outside the repository.
func (d *dist) notes() error {
	history, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	// What is not tagged is not released, and may be described as such.
	version := strings.TrimPrefix(d.release.Version, "v")
	notes, err := changelog.Section(string(history), version)
	if err != nil && d.tag == "" {
		notes, err = changelog.Section(string(history), "Unreleased")
	}
	if err != nil {
		return err
	}
	return d.write("notes.md", []byte(changelog.Absolute(notes, d.release.Source+"/blob/"+d.release.Version)))
}

// sum writes the checksums of all files, as sha256sum checks them. The notes are no file
// that users download.
func (d *dist) sum() error {
	files, err := archive.Files(d.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, file := range files {
		if file.Name == "notes.md" {
			continue
		}
		content, err := file.Read()
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name)
	}
	return d.write("SHA256SUMS", []byte(sums.String()))
}

func (d *dist) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(d.out, name), content, 0o644) //nolint:gosec // What is published is read by everybody.
}
