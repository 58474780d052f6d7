package sbom_test

import (
	"bytes"
	"fmt"
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
	type summary struct{ Name, Version, Licence, Supplier, Address string }
	var got []summary
	for _, p := range document.Packages {
		got = append(got, summary{p.PackageName, p.PackageVersion, p.PackageLicenseConcluded, p.PackageSupplier.Supplier, p.PackageExternalReferences[0].Locator})
	}
	want := []summary{
		{"example.com/hello", "v1.2.3", "Apache-2.0", "example.com", "pkg:golang/example.com/hello@v1.2.3"},
		{"example.com/org/module/v2", "v2.0.1", "MIT AND BSD-3-Clause", "example.com", "pkg:golang/example.com/org/module/v2@v2.0.1"},
		{"github.com/org/other", "v0.1.0", "MIT", "github.com/org", "pkg:golang/github.com/org/other@v0.1.0"},
		{"stdlib", "1.26.8", "BSD-3-Clause", "The Go Authors", "pkg:golang/stdlib@1.26.8"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var tree []string
	for _, r := range document.Relationships {
		tree = append(tree, fmt.Sprintf("%s %s %s", r.RefA.ElementRefID, r.Relationship, r.RefB.ElementRefID))
	}
	wantTree := []string{
		"DOCUMENT DESCRIBES Program", "Program DEPENDS_ON Module-1", "Program DEPENDS_ON Module-3",
		"Module-1 DEPENDS_ON Module-2", "Module-1 DEPENDS_ON Module-3", "Module-2 DEPENDS_ON Module-3",
	}
	if diff := cmp.Diff(wantTree, tree); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
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
		{Path: "example.com/org/module/v2", Version: "v2.0.1", SPDX: "MIT AND BSD-3-Clause", Direct: true, Requires: []string{"github.com/org/other", "stdlib"}},
		{Path: "github.com/org/other", Version: "v0.1.0", SPDX: "MIT", Requires: []string{"stdlib"}},
		{Path: licences.StandardLibrary, Version: "1.26.8", SPDX: "BSD-3-Clause", Direct: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
