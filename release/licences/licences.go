package licences

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"github.com/kubectl-ocm/kubectl-ocm/release/archive"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// StandardLibrary is the module path that Go's standard library is listed under: scanners
// of vulnerabilities know it by this name.
const StandardLibrary = "stdlib"

// Module is a module that is linked, with its licence as an SPDX expression and the
// texts, which are named MODULE/FILE.
type Module struct {
	Path, Version string
	SPDX          string
	Texts         []archive.File
	// Direct is true if the program's own module imports packages of the module, and
	// Requires are the paths of the other modules that its own packages import, sorted.
	Direct   bool
	Requires []string
}

// Texts are the texts of all modules, for a directory of their own.
func Texts(modules []Module) []archive.File {
	var files []archive.File
	for _, module := range modules {
		for _, text := range module.Texts {
			text.Name = "licenses/" + text.Name
			files = append(files, text)
		}
	}
	return files
}

// Collect returns the modules of a program, sorted by path. It was built in dir, the
// directory of its module.
func Collect(ctx context.Context, dir string, p program.Program) ([]Module, error) {
	packages, err := linked(ctx, dir, p)
	if err != nil {
		return nil, err
	}
	goroot, err := goroot(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	for _, pkg := range packages {
		module, root := pkg.module(goroot)
		if module == p.Info.Main.Path {
			continue
		}
		if found[module] == nil {
			found[module] = map[string]string{}
		}
		dir := pkg.Dir
		if pkg.Standard {
			// It has other licences only for code that is linked by experiments.
			dir = root
		}
		if err := texts(root, dir, found[module]); err != nil {
			return nil, err
		}
	}
	required := edges(packages, goroot)
	var modules []Module
	for _, m := range versions(p) {
		m.Direct = required[p.Info.Main.Path][m.Path]
		m.Requires = slices.Sorted(maps.Keys(required[m.Path]))
		module, err := describe(m, found[m.Path])
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.Path, m.Version, err)
		}
		modules = append(modules, module)
	}
	return modules, nil
}

// versions are the modules of a program as it names them itself.
func versions(p program.Program) []Module {
	// The toolchain's version may be followed by the names of experiments.
	release, _, _ := strings.Cut(strings.TrimPrefix(p.Info.GoVersion, "go"), " ")
	modules := []Module{{Path: StandardLibrary, Version: release}}
	for _, m := range p.Info.Deps {
		version := m.Version
		if m.Replace != nil && m.Replace.Version != "" {
			version = m.Replace.Version
		}
		modules = append(modules, Module{Path: m.Path, Version: version})
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return modules
}

// isText matches the names of files that have a licence, or what it asks to pass on.
var isText = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// aboutOthers are the extensions of files that are programs, or about documentation, which
// is not linked.
func aboutOthers() []string { return []string{".go", ".docs"} }

// texts adds the licence files of a directory and of those above it up to the root of
// its module, by path: a package that was taken from elsewhere has a licence of its own.
func texts(root, dir string, found map[string]string) error {
	if within, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(within) {
		return fmt.Errorf("%s is not in %s", dir, root)
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && isText.MatchString(entry.Name()) && !slices.Contains(aboutOthers(), filepath.Ext(entry.Name())) {
				file := filepath.Join(dir, entry.Name())
				name, err := filepath.Rel(root, file)
				if err != nil {
					return err
				}
				found[filepath.ToSlash(name)] = file
			}
		}
		if dir == root {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// permitted are licences under which a program may be passed on as it is, with their
// texts next to it.
func permitted() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "Unlicense", "Zlib"}
}

// describe reads the texts of a module.
func describe(m Module, found map[string]string) (Module, error) {
	var expressions []string
	for name, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			return m, err
		}
		m.Texts = append(m.Texts, archive.File{Name: path.Join(m.Path, name), Mode: archive.Plain, Data: text})
		ids := known(name, text)
		for _, id := range ids {
			if !slices.Contains(permitted(), id) {
				return m, fmt.Errorf("the licence %s of %s is not one of %v", id, name, permitted())
			}
		}
		expressions = append(expressions, ids...)
	}
	slices.Sort(expressions)
	m.SPDX = strings.Join(slices.Compact(expressions), " AND ")
	if m.SPDX == "" {
		return m, fmt.Errorf("no known licence among %d files", len(found))
	}
	slices.SortFunc(m.Texts, func(a, b archive.File) int { return strings.Compare(a.Name, b.Name) })
	return m, nil
}

// known returns the licences that a text is, by their SPDX identifiers. Notices and
// grants of patents are passed on, and are no licences.
func known(name string, text []byte) []string {
	var ids []string
	if kind := strings.ToUpper(path.Base(name)); strings.HasPrefix(kind, "NOTICE") || strings.HasPrefix(kind, "PATENTS") {
		return nil
	}
	for _, match := range licensecheck.Scan(text).Match {
		if !match.IsURL {
			ids = append(ids, match.ID)
		}
	}
	return ids
}
