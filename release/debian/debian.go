package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// Package is the Debian package of a program.
type Package struct {
	// Name is that of the package.
	Name    string
	Program program.Program
	// Summary is the description in a line, and Description in a paragraph of lines that
	// begin with a space.
	Summary, Description string
	// Relations are further fields about other packages, each in a line.
	Relations []string
	// Programs is the directory of the programs on a system, such as usr/bin/.
	Programs string
	// Version has no leading v.
	Version, Homepage string
	// Maintainer is a name and an address.
	Maintainer string
	// Files are those of the program's archive.
	Files []archive.File
}

// DebianVersion is the version by Debian's rules, in which only what follows a tilde is
// before the release: 0.2.0~rc.1 for 0.2.0-rc.1.
func (p Package) DebianVersion() string { return strings.Replace(p.Version, "-", "~", 1) }

// Architecture is Debian's name for the processor, which for most is Go's.
func (p Package) Architecture() string {
	if p.Program.Platform.Arch == "ppc64le" {
		return "ppc64el"
	}
	return p.Program.Platform.Arch
}

// Date is the date of the changelog's entry.
func (p Package) Date() string { return p.Program.Time.Format("Mon, 02 Jan 2006 15:04:05 -0700") }

// Build writes the package to a directory, under the name that dpkg-deb gives it:
// kubectl-ocm_0.1.0_amd64.deb.
func (p Package) Build(ctx context.Context, dir string) error {
	scratch, err := os.MkdirTemp(dir, "debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	files, err := p.layout()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := file.Save(filepath.Join(scratch, "root")); err != nil {
			return err
		}
	}
	// One thread, because two compress to other bytes than one.
	build := exec.CommandContext(ctx, "dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", "root", "..")
	build.Dir = scratch
	// dpkg-deb dates every younger file by it.
	build.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(p.Program.Time.Unix(), 10))
	output, err := build.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("building a Debian package needs dpkg-deb; install dpkg")
	}
	if err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, output)
	}
	return nil
}
