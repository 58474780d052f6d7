package program

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// Platform is what a program runs on.
type Platform struct{ OS, Arch string }

// ParsePlatform parses OS/ARCH.
func ParsePlatform(text string) (Platform, error) {
	system, arch, ok := strings.Cut(text, "/")
	if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
		return Platform{}, fmt.Errorf("%q is no platform; name it as linux/amd64", text)
	}
	return Platform{OS: system, Arch: arch}, nil
}

// String is the platform as OS/ARCH.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Program is a program that was built for one platform.
type Program struct {
	Name     string
	Path     string
	Platform Platform
	// Revision is the commit that it was built from, or empty when it was not built
	// in a repository, and Modified is set when files differed from that commit.
	Revision string
	Modified bool
	// Time is when that commit was made. What is packed is dated by it, so that
	// packing twice gives the same bytes.
	Time time.Time
	Info *debug.BuildInfo
}

// Path is where the program of a platform is built: DIR/OS_ARCH/NAME.
func Path(dir, name string, platform Platform) string {
	if platform.OS == "windows" {
		name += ".exe"
	}
	return filepath.Join(dir, platform.OS+"_"+platform.Arch, name)
}

// Open describes the program of a platform.
func Open(dir, name string, platform Platform) (Program, error) {
	p := Program{Name: name, Platform: platform, Path: Path(dir, name, platform), Time: time.Unix(0, 0).UTC()}
	var err error
	if p.Info, err = buildinfo.ReadFile(p.Path); err != nil {
		return Program{}, fmt.Errorf("reading the build information of %s: %w", p.Path, err)
	}
	if err := p.read(); err != nil {
		return Program{}, fmt.Errorf("the build information of %s: %w", p.Path, err)
	}
	if p.Platform != platform {
		return Program{}, fmt.Errorf("%s is built for %s, not for %s", p.Path, p.Platform, platform)
	}
	return p, nil
}

// read takes from the settings of the build what they say.
func (p *Program) read() error {
	for _, setting := range p.Info.Settings {
		switch setting.Key {
		case "GOOS":
			p.Platform.OS = setting.Value
		case "GOARCH":
			p.Platform.Arch = setting.Value
		case "vcs.revision":
			p.Revision = setting.Value
		case "vcs.modified":
			p.Modified = setting.Value == "true"
		case "vcs.time":
			made, err := time.Parse(time.RFC3339, setting.Value)
			if err != nil {
				return err
			}
			p.Time = made.UTC()
		}
	}
	return nil
}

// Commit is the revision, with a mark when files differed from it.
func (p Program) Commit() string {
	if p.Modified {
		return p.Revision + "-dirty"
	}
	return p.Revision
}

// File is the name of the program's file.
func (p Program) File() string { return filepath.Base(p.Path) }
