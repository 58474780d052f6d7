//go:build linux

package cmd_test

import (
	"flag"
	"fmt"
	"go/constant"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/tools/go/packages"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

var update = flag.Bool("update", false, "add what is new to testdata/stable.txt")

// stable is what a release promises to keep: docs/reference/compatibility.md.
const stable = "testdata/stable.txt"

// unstable is what the page leaves out: kubectl ocm local.
var unstable = regexp.MustCompile(`^(command|flag) kubectl ocm local\b|^json local\.`)

// TestStable: what the file names is in the program. A line that goes away breaks
// somebody's script, and needs the deprecation that the page on compatibility describes.
func TestStable(t *testing.T) {
	t.Parallel()
	now := slices.Concat(flagLines(), codeLines(t))
	slices.Sort(now)
	now = slices.DeleteFunc(slices.Compact(now), func(line string) bool { return unstable.MatchString(line) })

	data, err := os.ReadFile(stable)
	if err != nil && !*update {
		t.Fatal(err)
	}
	promised := slices.Collect(lines(string(data)))
	for _, line := range promised {
		if _, found := slices.BinarySearch(now, line); !found {
			t.Errorf("%q is promised in %s and gone", line, stable)
		}
	}
	for _, kind := range []string{"command ", "flag ", "json ", "name "} {
		if !slices.ContainsFunc(promised, func(line string) bool { return strings.HasPrefix(line, kind) }) && !*update {
			t.Errorf("%s has no line of the kind %q", stable, kind)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(stable, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// flagLines are the commands and the flags that help shows, also under the old names of
// commands.
func flagLines() []string {
	root := cmd.New(cmd.Env{Name: "kubectl ocm", Clock: clock.RealClock{}, Getenv: func(string) string { return "" }})
	var out []string
	var walk func(path string, c *cobra.Command)
	walk = func(path string, c *cobra.Command) {
		out = append(out, "command "+path)
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				out = append(out, fmt.Sprintf("flag %s --%s %s", path, f.Name, f.Value.Type()))
			}
		})
		for _, child := range c.Commands() {
			if !child.IsAvailableCommand() {
				continue
			}
			walk(path+" "+child.Name(), child)
			for _, name := range child.Aliases {
				if !slices.Contains(cli.Aliases(child), name) {
					walk(path+" "+name, child)
				}
			}
		}
	}
	walk(root.CommandPath(), root)
	return out
}

// codeLines are the keys of the JSON that commands print, and the names that hub,
// agents and add-ons meet at.
func codeLines(t *testing.T) []string {
	t.Helper()
	const mode = packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports |
		packages.NeedExportFile | packages.NeedFiles
	loaded, err := packages.Load(&packages.Config{
		Mode: mode, Context: t.Context(),
		// As make build compiles, so that nothing is compiled again.
		BuildFlags: []string{"-trimpath", "-tags=grpcnotrace"}, Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, "./...", "../names", "../registration/driver/...")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range loaded {
		for _, problem := range p.Errors {
			t.Error(problem)
		}
		switch {
		case p.Name == "names":
			out = append(out, nameLines(p.Types.Scope(), "")...)
			continue
		case strings.Contains(p.PkgPath, "/pkg/registration/driver"):
			out = append(out, nameLines(p.Types.Scope(), "Annotation")...)
			continue
		}
		for _, printed := range printedTypes(p) {
			out = append(out, keys("json "+typeName(printed)+" ", printed, nil)...)
			out = append(out, keys("json "+typeName(printed)+" ", header(loaded), nil)...)
		}
	}
	return out
}

// header is the type whose keys every document and item begins with.
func header(loaded []*packages.Package) types.Type {
	i := slices.IndexFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.PkgPath, "/pkg/cmd/internal/cli") })
	return loaded[i].Types.Scope().Lookup("Header").Type()
}

// nameLines are the values of the constants of pkg/names, and of the annotations of
// registration drivers.
func nameLines(scope *types.Scope, prefix string) []string {
	var out []string
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		// The wording of a message is OCM's, where it has one, and no promise.
		if ok && c.Exported() && strings.HasPrefix(name, prefix) && c.Val().Kind() == constant.String && !strings.HasPrefix(name, "Message") {
			out = append(out, "name "+constant.StringVal(c.Val()))
		}
	}
	return out
}
