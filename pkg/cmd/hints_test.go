//go:build linux

package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
)

// TestHintsAreCompleteCommands reads the source: a message that names a command
// has it from the one place that adds the connection flags of the call.
func TestHintsAreCompleteCommands(t *testing.T) {
	t.Parallel()
	spelled := spelledCommand()
	for _, example := range []string{"see them with get clusters", "run: init --wait", "list them with: kubectl get pods"} {
		if !spelled.MatchString(example) {
			t.Fatalf("%q is not taken for a command", example)
		}
	}
	for _, root := range []string{".", filepath.Join("..", "diagnose")} {
		if err := filepath.WalkDir(root, spellsNoCommand(t, spelled)); err != nil {
			t.Fatal(err)
		}
	}
}

// spellsNoCommand reports the text in the files of a folder that spells a command.
func spellsNoCommand(t *testing.T, spelled *regexp.Regexp) fs.WalkDirFunc {
	t.Helper()
	return func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		// A controller has no connection flags of a user, and the helpers are in cli.
		case entry.IsDir() && (path == "controller" || path == filepath.Join("internal", "cli")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if aboutNoCall(n) {
				return false
			}
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && spelled.MatchString(text) {
					t.Errorf("%s: %q spells a command: it lacks the flags of the call", files.Position(n.Pos()), text)
				}
			case *ast.BinaryExpr:
				if n.Op == token.ADD && (programName(n.X) || programName(n.Y)) {
					t.Errorf("%s: a command is put together: it lacks the flags of the call", files.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if slices.ContainsFunc(n.Args, programName) {
					t.Errorf("%s: a command is put together: it lacks the flags of the call", files.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	}
}

// spelledCommand matches text that spells a command of ours or of kubectl.
func spelledCommand() *regexp.Regexp {
	var commands []string
	for _, parent := range cmd.New(cmd.Env{Getenv: func(string) string { return "" }}).Commands() {
		if parent.Hidden {
			continue
		}
		names := children(parent)
		if len(names) == 0 {
			commands = append(commands, parent.Name()+" --[a-z]")
			continue
		}
		commands = append(commands, parent.Name()+" ("+strings.Join(names, "|")+`)\b`)
	}
	return regexp.MustCompile(`\b(` + strings.Join(commands, "|") + `|kubectl (-n|apply|create|delete|describe|edit|get)\b)`)
}

func children(parent *cobra.Command) []string {
	var names []string
	for _, child := range parent.Commands() {
		if !child.Hidden {
			names = append(names, child.Name())
		}
	}
	return names
}

// aboutNoCall reports whether a part of the source is about no call with flags:
// help, errors of commands that do not exist, and what adds the flags itself.
func aboutNoCall(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		return ok && slices.Contains([]string{"Use", "Short", "Long", "Example"}, key.Name)
	case *ast.AssignStmt:
		return selects(n.Lhs[0], "Use") || selects(n.Lhs[0], "Long")
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (slices.Contains([]string{"Command", "CommandAt", "Elsewhere", "OnHub", "OnManagedCluster", "Kubectl", "line", "Absent", "Parent", "AddTo"}, called.Sel.Name) ||
			strings.HasSuffix(called.Sel.Name, "Var"))
	}
	return false
}

// programName reports whether an expression is how the user called us.
func programName(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Name" {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == "env" || selects(selector.X, "env") || selects(selector.X, "Env")
}

// selects reports whether an expression is a field of that name.
func selects(e ast.Expr, field string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == field
}
