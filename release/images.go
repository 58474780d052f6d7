package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kubectl-ocm/kubectl-ocm/release/image"
	"github.com/kubectl-ocm/kubectl-ocm/release/licences"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/sbom"
)

// imageFlags are the flags of image.
type imageFlags struct {
	about            image.Description
	name, dir        string
	module           string
	binary, platform string
	output           string
	push             bool
}

func parseImage(args []string) (imageFlags, error) {
	var f imageFlags
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&f.name, "name", "", "Name of the image, with its tag")
	flags.StringVar(&f.dir, "dir", "", "Directory of the programs, which are OS_ARCH/PROGRAM in it")
	flags.StringVar(&f.module, "module", "", "Directory of the program's module; with it, the image has the licences of what is linked, and a bill of materials")
	flags.StringVar(&f.binary, "program", "", "Program to pack")
	flags.StringVar(&f.platform, "platforms", "linux/amd64,linux/arm64", "Platforms of the image")
	flags.StringVar(&f.output, "output", "", "Archive to write")
	flags.BoolVar(&f.push, "push", false, "Write the image to the registry of its name, too")
	flags.StringVar(&f.about.Summary, "summary", "", "What the program is, in one sentence")
	flags.StringVar(&f.about.Version, "version", "", "Version of the program")
	flags.StringVar(&f.about.Source, "source", "", "Address of the program's source")
	flags.StringVar(&f.about.Licences, "licences", "Apache-2.0", "SPDX expression of the program's licence")
	if err := flags.Parse(args); err != nil {
		return f, err
	}
	f.about.Title = f.binary
	if f.name == "" || f.dir == "" || f.binary == "" || f.output == "" {
		return f, errors.New("image needs -name, -dir, -program and -output")
	}
	return f, nil
}

func makeImage(ctx context.Context, args []string) error {
	f, err := parseImage(args)
	if err != nil {
		return err
	}
	reference, err := image.Name(f.name)
	if err != nil {
		return err
	}
	contents, err := f.contents(ctx)
	if err != nil {
		return err
	}
	index, err := image.Index(f.about, contents...)
	if err != nil {
		return err
	}
	if err := f.write(reference, index, contents[0].Program); err != nil {
		return err
	}
	if f.push {
		return image.Push(ctx, reference, index, contents...)
	}
	return nil
}

// contents are what is packed for each platform.
func (f imageFlags) contents(ctx context.Context) ([]image.Content, error) {
	programs, err := openAll(f.dir, f.binary, f.platform)
	if err != nil {
		return nil, err
	}
	var contents []image.Content
	for _, p := range programs {
		content := image.Content{Program: p}
		if f.module != "" {
			modules, err := licences.Collect(ctx, f.module, p)
			if err != nil {
				return nil, err
			}
			content.Licences = licences.Texts(modules)
			if content.SBOM, err = sbom.Write(p, f.about.Version, f.about.Licences, modules); err != nil {
				return nil, err
			}
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// openAll describes a program for each of the platforms.
func openAll(dir, name, platforms string) ([]program.Program, error) {
	var programs []program.Program
	for text := range strings.SplitSeq(platforms, ",") {
		platform, err := program.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		p, err := program.Open(dir, name, platform)
		if err != nil {
			return nil, err
		}
		programs = append(programs, p)
	}
	return programs, nil
}

// write writes the archive and prints the name and the digest of what is in it.
func (f imageFlags) write(reference name.Reference, index v1.ImageIndex, p program.Program) error {
	out, err := os.Create(f.output)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := image.Archive(out, reference, index, p.Time); err != nil {
		return fmt.Errorf("writing %s: %w", f.output, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s: %s@%s\n", filepath.Base(f.output), reference, digest)
	return err
}
