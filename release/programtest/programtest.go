package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// Name is the name of the program.
const Name = "hello"

// Committed is when the commit of the program was made.
var Committed = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC) //nolint:gochecknoglobals // A time cannot be a constant.

// Files are files by their paths.
type Files map[string]string

// Hello are the sources of the program.
func Hello() Files {
	return Files{
		"go.mod":  "module example.com/hello\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
	}
}

// Build builds Hello for each of the platforms.
func Build(t *testing.T, platforms ...program.Platform) []program.Program {
	t.Helper()
	return BuildAt(t, Commit(t, Hello()), platforms...)
}

// BuildAt builds the program of a directory, and describes it for each of the platforms.
func BuildAt(t *testing.T, source string, platforms ...program.Platform) []program.Program {
	t.Helper()
	out := t.TempDir()
	var programs []program.Program
	for _, platform := range platforms {
		file := program.Path(out, Name, platform)
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", file, ".") //nolint:gosec // The directory is the test's.
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Arch)
		run(t, source, build)
		p, err := program.Open(out, Name, platform)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	return programs
}

// Commit writes sources to a new directory and commits them. It makes the same commit
// each time: its date and its author are fixed.
func Commit(t *testing.T, sources Files) string {
	t.Helper()
	dir := t.TempDir()
	Write(t, dir, sources)
	date := Committed.Format(time.RFC3339)
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "--message=hello"}} {
		git := exec.CommandContext(t.Context(), "git", args...) //nolint:gosec // The arguments are those above.
		git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE="+date,
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE="+date)
		run(t, dir, git)
	}
	return dir
}

// Write writes files to a directory.
func Write(t *testing.T, dir string, files Files) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, dir string, command *exec.Cmd) {
	t.Helper()
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// Copy copies a file.
func Copy(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Dir(to), Files{filepath.Base(to): string(content)})
}
