package licences_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-ocm/kubectl-ocm/release/licences"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/programtest"
)

// proprietary is no licence to pass anything on.
const proprietary = "Copyright Example Ltd. All rights reserved.\n"

// TestCollect: modules that are linked are listed with all their texts, those of
// packages with a licence of their own included, and other modules are not.
func TestCollect(t *testing.T) {
	t.Parallel()
	sources := helloWith(programtest.Files{
		"linked/LICENSE":             apache(t),
		"linked/NOTICE":              "Linked is made by somebody.\n",
		"linked/copied/LICENSE.txt":  standard(t),
		"linked/copied/copied.go":    "package copied\n\nimport \"os\"\n\nfunc F() { os.Exit(0) }\n",
		"linked/licence.go":          "package linked\n",
		"linked/LICENSE.docs":        proprietary,
		"linked/unused/LICENSE":      proprietary,
		"linked/unused/unused.go":    "package unused\n",
		"linked/copied/licensed.txt": proprietary,
	})
	modules, err := collect(t, sources)
	if err != nil {
		t.Fatal(err)
	}
	type summary struct {
		Path, SPDX string
		Texts      []string
		Direct     bool
		Requires   []string
	}
	var got []summary
	for _, module := range modules {
		s := summary{Path: module.Path, SPDX: module.SPDX, Direct: module.Direct, Requires: module.Requires}
		for _, text := range module.Texts {
			s.Texts = append(s.Texts, text.Name)
		}
		got = append(got, s)
	}
	want := []summary{
		{Path: "example.com/linked", SPDX: "Apache-2.0 AND BSD-3-Clause", Texts: []string{"example.com/linked/LICENSE", "example.com/linked/NOTICE", "example.com/linked/copied/LICENSE.txt"}, Direct: true, Requires: []string{"stdlib"}},
		{Path: "stdlib", SPDX: "BSD-3-Clause", Texts: []string{"stdlib/LICENSE", "stdlib/PATENTS"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRefused: what cannot be passed on stops the release.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]programtest.Files{
		"no licence":           {},
		"no known licence":     {"linked/LICENSE": proprietary},
		"not permitted":        {"linked/LICENSE": "SPDX-License-Identifier: AGPL-3.0-only\n\n" + affero},
		"none in the packages": {"linked/unused/LICENSE": standard(t), "linked/unused/unused.go": "package unused\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files["linked/copied/copied.go"] = "package copied\n\nfunc F() {}\n"
			if _, err := collect(t, helloWith(files)); err == nil || !strings.Contains(err.Error(), "example.com/linked") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// affero is the notice that programs under the GNU Affero General Public License have.
const affero = `This program is free software: you can redistribute it and/or modify
it under the terms of the GNU Affero General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.
`

// helloWith is a program that links the package copied of the module linked, and a
// module that it requires and does not link.
func helloWith(files programtest.Files) programtest.Files {
	all := programtest.Files{
		"go.mod": "module example.com/hello\n\ngo 1.26\n\nrequire (\n\texample.com/linked v0.0.0\n\texample.com/other v0.0.0\n)\n\n" +
			"replace example.com/linked => ./linked\n\nreplace example.com/other => ./other\n",
		"main.go":       "package main\n\nimport \"example.com/linked/copied\"\n\nfunc main() { copied.F() }\n",
		"linked/go.mod": "module example.com/linked\n\ngo 1.26\n",
		"other/go.mod":  "module example.com/other\n\ngo 1.26\n",
	}
	maps.Copy(all, files)
	return all
}

func collect(t *testing.T, sources programtest.Files) ([]licences.Module, error) {
	t.Helper()
	dir := programtest.Commit(t, sources)
	p := programtest.BuildAt(t, dir, program.Platform{OS: "linux", Arch: "amd64"})[0]
	return licences.Collect(t.Context(), dir, p)
}

// standard is the licence of Go.
func standard(t *testing.T) string {
	t.Helper()
	return read(t, filepath.Join(goroot(t), "LICENSE"))
}

// apache is the licence of this project.
func apache(t *testing.T) string {
	t.Helper()
	return read(t, "../../LICENSE")
}

func goroot(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(root))
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
