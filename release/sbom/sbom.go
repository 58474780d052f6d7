package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/package-url/packageurl-go"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/kubectl-ocm/kubectl-ocm/release/licences"
	"github.com/kubectl-ocm/kubectl-ocm/release/program"
)

// MediaType of the documents.
const MediaType = "application/spdx+json"

// noAssertion is SPDX's word for what a document does not say.
const noAssertion = "NOASSERTION"

// Write returns the document of a program, whose version and licence are not in it.
func Write(p program.Program, version, licence string, modules []licences.Module) ([]byte, error) {
	content, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	own := describe("Program", licences.Module{Path: p.Info.Main.Path, Version: version, SPDX: licence})
	own.PrimaryPackagePurpose = "APPLICATION"
	own.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}}
	document := &spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s %s for %s", p.Name, version, p.Platform),
		DocumentNamespace: fmt.Sprintf("https://%s/spdx/%s-%x", p.Info.Main.Path, p.Name, sum),
		CreationInfo: &spdx.CreationInfo{
			Created:  p.Time.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "kubectl-ocm-release"}},
		},
		Packages:      []*spdx.Package{own},
		Relationships: []*spdx.Relationship{relate("DOCUMENT", "DESCRIBES", own.PackageSPDXIdentifier)},
	}
	ids := map[string]common.ElementID{}
	for i, m := range modules {
		module := describe(fmt.Sprintf("Module-%d", i+1), m)
		ids[m.Path] = module.PackageSPDXIdentifier
		document.Packages = append(document.Packages, module)
	}
	for _, m := range modules {
		if m.Direct {
			document.Relationships = append(document.Relationships, relate(own.PackageSPDXIdentifier, "DEPENDS_ON", ids[m.Path]))
		}
	}
	for _, m := range modules {
		for _, required := range m.Requires {
			document.Relationships = append(document.Relationships, relate(ids[m.Path], "DEPENDS_ON", ids[required]))
		}
	}
	var out bytes.Buffer
	if err := json.Write(document, &out, json.Indent("  ")); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func describe(id string, m licences.Module) *spdx.Package {
	namespace, name := path.Split(m.Path)
	address := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, m.Version, nil, "")
	return &spdx.Package{
		PackageName:               m.Path,
		PackageSPDXIdentifier:     common.ElementID(id),
		PackageVersion:            m.Version,
		PackageSupplier:           &common.Supplier{SupplierType: "Organization", Supplier: supplier(m.Path)},
		PackageDownloadLocation:   noAssertion,
		PackageLicenseConcluded:   m.SPDX,
		PackageLicenseDeclared:    m.SPDX,
		PackageCopyrightText:      noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: address.ToString()}},
	}
}

// supplier is who a module comes from: the account at a code host that its path begins
// with, or else the domain.
func supplier(module string) string {
	if module == licences.StandardLibrary {
		return "The Go Authors"
	}
	parts := strings.Split(module, "/")
	if len(parts) > 1 && slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org"}, parts[0]) {
		return strings.Join(parts[:2], "/")
	}
	return parts[0]
}

func relate(a common.ElementID, relationship string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: a}, Relationship: relationship, RefB: common.DocElementID{ElementRefID: b},
	}
}
