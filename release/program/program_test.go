package program_test

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/programtest"
)

// TestOpen: a program says where it comes from, and whether that is all.
func TestOpen(t *testing.T) {
	t.Parallel()
	source := programtest.Commit(t, programtest.Hello())
	windows := program.Platform{OS: "windows", Arch: "amd64"}
	clean := programtest.BuildAt(t, source, windows)[0]
	if clean.File() != "hello.exe" || clean.Platform != windows || !clean.Time.Equal(programtest.Committed) {
		t.Errorf("got %+v", clean)
	}
	if len(clean.Revision) != 40 || clean.Commit() != clean.Revision {
		t.Errorf("got revision %q, commit %q", clean.Revision, clean.Commit())
	}

	programtest.Write(t, source, programtest.Files{"other.go": "package main\n"})
	if dirty := programtest.BuildAt(t, source, windows)[0]; dirty.Commit() != clean.Revision+"-dirty" {
		t.Errorf("got commit %q", dirty.Commit())
	}
}

// TestOpenAnother: a program of another platform is not taken for what was asked for.
func TestOpenAnother(t *testing.T) {
	t.Parallel()
	source := programtest.Commit(t, programtest.Hello())
	built := programtest.BuildAt(t, source, program.Platform{OS: "linux", Arch: "amd64"})[0]
	dir := t.TempDir()
	asked := program.Platform{OS: "linux", Arch: "arm64"}
	programtest.Copy(t, built.Path, program.Path(dir, programtest.Name, asked))
	if _, err := program.Open(dir, programtest.Name, asked); err == nil {
		t.Error("a program for amd64 was taken for one for arm64")
	}
}

func TestParsePlatform(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{"linux/amd64": true, "linux": false, "/amd64": false, "linux/": false, "linux/arm/v7": false} {
		platform, err := program.ParsePlatform(text)
		if valid != (err == nil) || valid && platform.String() != text {
			t.Errorf("%s: got %v, %v", text, platform, err)
		}
	}
}
