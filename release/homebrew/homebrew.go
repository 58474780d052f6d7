package homebrew

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/kubectl-ocm/kubectl-ocm/release/asset"
)

// File is the name of the formula, which Homebrew takes the name of the class from.
const File = "kubectl-ocm.rb"

//go:embed kubectl-ocm.rb.tmpl
var formula string

// Formula describes the plugin of a release. Homebrew runs on two systems, each on two
// kinds of processor.
func Formula(release asset.Release) ([]byte, error) {
	values := map[string]any{"Version": strings.TrimPrefix(release.Version, "v"), "Homepage": release.Source}
	for _, archive := range release.Archives {
		platform := archive.Program.Platform
		values[platform.OS+"_"+platform.Arch] = map[string]string{"URL": release.URL(archive.File), "SHA256": archive.SHA256}
	}
	parsed, err := template.New(File).Option("missingkey=error").Parse(formula)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("writing %s: %w", File, err)
	}
	return out.Bytes(), nil
}
