package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	// product is the program that is released, and licence its licence.
	product = "kubectl-ocm"
	licence = "Apache-2.0"
	// root is the directory of its module.
	root = ".."
)

// dist is a release that is being made.
type dist struct {
	dir, platforms string
	// pages is the directory of the manual pages and completions.
	pages string
	// image is the archive of the container image, and repository its name without a tag,
	// which is compiled into the programs.
	image, repository string
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
	flags.StringVar(&d.release.Version, "version", "", "Version of the program, with a leading v")
	flags.StringVar(&d.tag, "tag", "", "Tag of the commit, if it has one")
	flags.StringVar(&d.out, "output", "", "Directory to write to; what is in it is deleted")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if d.dir == "" || d.platforms == "" || d.pages == "" || d.image == "" || d.release.Version == "" || d.out == "" {
		return nil, errors.New("dist needs -dir, -platforms, -pages, -image, -version and -output")
	}
	if d.tag != "" && d.tag != d.release.Version {
		return nil, fmt.Errorf("the commit has the tag %s, and the program is %s; tag the commit whose version it is", d.tag, d.release.Version)
	}
	if d.tag != "" && d.repository == "" {
		return nil, errors.New("a release names its container image; set IMAGE_REPOSITORY to the name without a tag, as in registry.example.com/kubectl-ocm")
	}
	return &d, nil
}

// makeDist writes the files of a release.
func makeDist(ctx context.Context, args []string) error {
	d, err := parseDist(args)
	if err != nil {
		return err
	}
	programs, err := openAll(d.dir, product, d.platforms)
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
	for _, p := range programs {
		if err := d.pack(ctx, p); err != nil {
			return fmt.Errorf("packing %s for %s: %w", p.Name, p.Platform, err)
		}
	}
	if err := d.saveImage(); err != nil {
		return err
	}
	if err := d.describe(); err != nil {
		return err
	}
	return d.sum()
}

// pack writes what there is for one platform: the archive, the bill of materials, and
// for Linux the Debian package.
func (d *dist) pack(ctx context.Context, p program.Program) error {
	if p.Revision == "" || p.Modified {
		return errors.New("it is not built from a commit; commit what has changed and build it again")
	}
	d.release.Source = "https://" + p.Info.Main.Path
	modules, err := licences.Collect(ctx, root, p)
	if err != nil {
		return err
	}
	files, err := d.files(p, modules)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s_%s_%s_%s", p.Name, d.release.Version, p.Platform.OS, p.Platform.Arch)
	if err := d.archive(name, p, files); err != nil {
		return err
	}
	document, err := sbom.Write(p, d.release.Version, licence, modules)
	if err != nil {
		return err
	}
	if err := d.write(name+".spdx.json", document); err != nil {
		return err
	}
	if p.Platform.OS != "linux" {
		return nil
	}
	return debian.Package{
		Program: p, Version: strings.TrimPrefix(d.release.Version, "v"), Homepage: d.release.Source,
		Maintainer: product + " maintainers <maintainers@kubectl-ocm.example.com>", Files: files,
	}.Build(ctx, d.out)
}

// files are the files of an archive.
func (d *dist) files(p program.Program, modules []licences.Module) ([]archive.File, error) {
	files, err := archive.Files(d.pages)
	if err != nil {
		return nil, err
	}
	files = append(files, licences.Texts(modules)...)
	if p.Platform.OS != "windows" {
		files = append(files, archive.File{Name: "kubectl_complete-ocm", Mode: archive.Executable, Data: []byte(completer)})
	}
	return append(files,
		archive.File{Name: "LICENSE", Mode: archive.Plain, Path: filepath.Join(root, "LICENSE")},
		archive.File{Name: p.File(), Mode: archive.Executable, Path: p.Path},
	), nil
}

// completer is the program that kubectl asks for completions of the plugin's arguments.
const completer = `#!/bin/sh
exec kubectl-ocm __complete "$@"
`

// archive writes the archive in the format that is usual on its system.
func (d *dist) archive(name string, p program.Program, files []archive.File) error {
	write, extension := archive.TarGzip, ".tar.gz"
	if p.Platform.OS == "windows" {
		write, extension = archive.Zip, ".zip"
	}
	name += extension
	var content bytes.Buffer
	if err := write(&content, p.Time, files); err != nil {
		return err
	}
	d.release.Archives = append(d.release.Archives, asset.Archive{
		Program: p, File: name, SHA256: fmt.Sprintf("%x", sha256.Sum256(content.Bytes())),
	})
	return d.write(name, content.Bytes())
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
