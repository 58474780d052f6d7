package sbom_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/kubectl-ocm/kubectl-ocm/release/licences"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
	"github.com/kubectl-ocm/kubectl-ocm/release/programtest"
	"github.com/kubectl-ocm/kubectl-ocm/release/sbom"
)

// TestWrite: the document is valid, and has the program and each module with its version,
// its licence and the address that scanners know it by.
func TestWrite(t *testing.T) {
	t.Parallel()
	text := written(t)
	document, err := json.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	type summary struct{ Name, Version, Licence, Address string }
	var got []summary
	for _, p := range document.Packages {
		got = append(got, summary{p.PackageName, p.PackageVersion, p.PackageLicenseConcluded, p.PackageExternalReferences[0].Locator})
	}
	want := []summary{
		{"example.com/hello", "v1.2.3", "Apache-2.0", "pkg:golang/example.com/hello@v1.2.3"},
		{"example.com/org/module/v2", "v2.0.1", "MIT AND BSD-3-Clause", "pkg:golang/example.com/org/module/v2@v2.0.1"},
		{"std", "go1.26.8", "BSD-3-Clause", "pkg:golang/std@go1.26.8"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if created := document.CreationInfo.Created; created != "2026-01-02T03:04:05Z" {
		t.Errorf("the document is of %s, not of the commit's date", created)
	}
}

// TestReproducible: two documents of one commit are the same.
func TestReproducible(t *testing.T) {
	t.Parallel()
	if !bytes.Equal(written(t), written(t)) {
		t.Error("two documents differ")
	}
}

func written(t *testing.T) []byte {
	t.Helper()
	p := programtest.Build(t, program.Platform{OS: "linux", Arch: "amd64"})[0]
	text, err := sbom.Write(p, "v1.2.3", "Apache-2.0", []licences.Module{
		{Path: "example.com/org/module/v2", Version: "v2.0.1", SPDX: "MIT AND BSD-3-Clause"},
		{Path: licences.StandardLibrary, Version: "go1.26.8", SPDX: "BSD-3-Clause"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
