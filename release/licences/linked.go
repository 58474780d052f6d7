package licences

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// linkedPackage is what go list says about a package.
type linkedPackage struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct{ Path, Dir string }
	Imports    []string
}

// module returns the path and the directory of the module of a package, which of the
// standard library is Go's.
func (p linkedPackage) module(goroot string) (name, dir string) {
	if p.Standard {
		return StandardLibrary, goroot
	}
	return p.Module.Path, p.Module.Dir
}

// edges are the modules that each module imports packages of.
func edges(packages []linkedPackage, goroot string) map[string]map[string]bool {
	modules := map[string]string{}
	for _, pkg := range packages {
		modules[pkg.ImportPath], _ = pkg.module(goroot)
	}
	required := map[string]map[string]bool{}
	for _, pkg := range packages {
		from := modules[pkg.ImportPath]
		if required[from] == nil {
			required[from] = map[string]bool{}
		}
		for _, imported := range pkg.Imports {
			// "C" and "unsafe" are in no module.
			if to := modules[imported]; to != "" && to != from {
				required[from][to] = true
			}
		}
	}
	return required
}

// goroot is the directory of Go. What go list calls the root of a package is another for
// some packages of the standard library.
func goroot(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(output)), err
}

// linked lists the packages of a program, by the settings that it was built with.
func linked(ctx context.Context, dir string, p program.Program) ([]linkedPackage, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module,Imports"}
	environment := append(os.Environ(), "GOOS="+p.Platform.OS, "GOARCH="+p.Platform.Arch)
	for _, setting := range p.Info.Settings {
		switch setting.Key {
		case "-tags":
			args = append(args, "-tags="+setting.Value)
		case "CGO_ENABLED":
			environment = append(environment, "CGO_ENABLED="+setting.Value)
		}
	}
	list := exec.CommandContext(ctx, "go", append(args, p.Info.Path)...) //nolint:gosec // What is listed is what was built.
	list.Dir, list.Env, list.Stderr = dir, environment, os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", p.Info.Path, err)
	}
	var packages []linkedPackage
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var pkg linkedPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
}
