// Package docs_test keeps the references of the repository alive.
package docs_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/test/docs"
)

// TestReferences fails on every reference to a page, file or anchor that does
// not exist, in whatever file of the repository it is.
func TestReferences(t *testing.T) {
	t.Parallel()
	root := os.DirFS("..")
	names := slices.DeleteFunc(tracked(t), func(name string) bool { return name == "docs/references_test.go" })
	found, err := dangling(root, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestWireContractIsUsed fails when code stops referring to the page whose facts
// it relies on.
func TestWireContractIsUsed(t *testing.T) {
	t.Parallel()
	used := 0
	for _, name := range tracked(t) {
		data, err := os.ReadFile(path.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			used += bytes.Count(data, []byte("docs/reference/wire-contract.md#"))
		}
	}
	if used < 40 {
		t.Errorf("Go files refer to %d facts of the wire contract", used)
	}
}

// TestReferencePagesAreComplete fails on a condition or metric of the code that
// its page lacks.
func TestReferencePagesAreComplete(t *testing.T) {
	t.Parallel()
	for page, pattern := range map[string]string{
		"reference/conditions.md": `\bCondition\w+ += "(\w+)"`,
		"reference/metrics.md":    `"(ocm_[a-z_]+[a-z])"`,
	} {
		text, found := docs.Page(t, page), docs.Matches(t, pattern, "pkg")
		if len(found) < 15 {
			t.Errorf("%s: only %v were found", page, found)
		}
		for _, name := range found {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/%s lacks %s", page, name)
			}
		}
	}
}

// TestReasonsOfWorksAreDocumented fails on a reason in a condition of ManifestWorks,
// ManifestWorkReplicaSets or add-ons of templates that the page of conditions lacks.
func TestReasonsOfWorksAreDocumented(t *testing.T) {
	t.Parallel()
	const constant = `\b(?:names|workv1|workv1alpha1|addonv1beta1)\.((?:Reason|AppliedManifest|ConditionRule|RegistrationApplied|AddonManifestAppliedReason|AddonAvailableReason)\w+)`
	page, values, documented := docs.Page(t, "reference/conditions.md"), reasons(t), 0
	for _, name := range docs.Matches(t, constant, "pkg/work/status", "pkg/work/replicaset", "pkg/addon/template") {
		value, ok := values[name]
		if !ok || strings.HasSuffix(name, "Prefix") {
			continue // A type of the API, or the beginning of reasons.
		}
		if documented++; !strings.Contains(page, "`"+value+"`") {
			t.Errorf("docs/reference/conditions.md lacks %s", value)
		}
	}
	if documented < 30 {
		t.Errorf("only %d reasons were found", documented)
	}
}

// reasons are the string constants of our names and of the API, by name.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	find := exec.CommandContext(t.Context(), "go", "list", "-f", "{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}",
		"github.com/kubectl-ocm/kubectl-ocm/pkg/names", "open-cluster-management.io/api/work/v1",
		"open-cluster-management.io/api/work/v1alpha1", "open-cluster-management.io/api/addon/v1beta1")
	find.Dir = ".."
	files, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for file := range strings.FieldsSeq(string(files)) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range stringConstant.FindAllSubmatch(data, -1) {
			values[string(m[1])] = string(m[2])
		}
	}
	return values
}

// stringConstant finds constants with a value that is a word.
var stringConstant = regexp.MustCompile(`(?m)^\s*(?:const )?([A-Z]\w+)(?: \w+)?\s+= "(\w+)"$`)

// TestDanglingReferencesAreFound has one broken reference of each kind.
func TestDanglingReferencesAreFound(t *testing.T) {
	t.Parallel()
	const page = "# Page\n\n## A heading, `quoted`\n\n## A heading, `quoted`\n\n### <a id=\"slug\"></a>Other words\n"
	for text, want := range map[string]string{
		"// See docs/guides/page.md.":                      "",
		"// See docs/guides/page.md#slug.":                 "",
		"// See docs/guides/page.md#a-heading-quoted-1 or": "",
		"// See docs/guides/gone.md.":                      "docs/guides/gone.md",
		"// See docs/guides/page.md#gone.":                 "docs/guides/page.md#gone",
		"# values of docs/guides/gone.yaml":                "docs/guides/gone.yaml",
		`read("../../docs/gone.md")`:                       "docs/gone.md",
		"// see pkg/there/code.go and pkg/there":           "",
		"// see pkg/gone/code.go":                          "pkg/gone/code.go",
		"// k8s.io/apimachinery/pkg/gone/x.go":             "",
		"// as contract" + " B.8 says":                     "contract" + " B.8",
		"// as in seed" + " 002":                           "seed" + " 002",
		"the seed" + "'s program":                          "the seed" + "'s program",
		"(tokens" + ".md 1.9)":                             "tokens" + ".md",
		"// design" + " D6":                                "design" + " D6",
	} {
		checkFound(t, fstest.MapFS{
			"docs/guides/page.md": {Data: []byte(page)},
			"pkg/there/code.go":   {Data: []byte(text)},
		}, "pkg/there/code.go", want)
	}
	for text, want := range map[string]string{
		"[a](page.md), [b](page.md#slug), [c](#own), [d](../../pkg/there), [e](https://example.com/x.md)\n\n## Own": "",
		"[a](gone.md)":        "gone.md",
		"[a](page.md#gone)":   "page.md#gone",
		"[a](#gone)":          "#gone",
		"[a](../gone/x.yaml)": "../gone/x.yaml",
		"[a]: page.md#gone":   "page.md#gone",
		"```\n# No heading\n```\n[a](#no-heading)": "#no-heading",
	} {
		checkFound(t, fstest.MapFS{
			"docs/guides/page.md": {Data: []byte(page)},
			"docs/guides/from.md": {Data: []byte(text)},
			"pkg/there/code.go":   {},
		}, "docs/guides/from.md", want)
	}
}

// checkFound fails unless the one file has the one dangling reference, or none.
func checkFound(t *testing.T, tree fstest.MapFS, name, want string) {
	t.Helper()
	found, err := dangling(tree, []string{name})
	switch text := string(tree[name].Data); {
	case err != nil:
		t.Fatal(err)
	case want == "" && len(found) > 0:
		t.Errorf("%q: %v", text, found)
	case want != "" && (len(found) != 1 || !strings.HasSuffix(found[0], " "+want)):
		t.Errorf("%q: found %v instead of %s", text, found, want)
	}
}

// tracked are the files of the repository, and those about to be added.
func tracked(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(path.Join("..", name)) // One that is deleted but not committed, or a link to a directory.
		return err != nil || !info.Mode().IsRegular()
	})
}

var (
	// inTree finds paths of the repository; the first group is what must not be
	// before one, the rest of a longer path.
	inTree = regexp.MustCompile(`(^|[^\w/.-]|(?:^|[^\w/])(?:\.\./)+)((?:docs|pkg|cmd|e2e|examples|scripts|manifests|bench)/[\w./-]*\w\.(?:go|md|ya?ml|sh|txtar|json))(#[\w-]+)?`)
	// link finds the targets of Markdown links.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]:\s+(\S+))`)
	// outside finds citations of documents that no reader of the repository has.
	outside = regexp.MustCompile(`contract [A-I]\.\d+|[Ss]eed 00\d|[Tt]he seed's program|(?:^|[^\w/-])tokens\.md|design D\d|users-[w]ant`)
)

// upstream is the page whose paths are those of other repositories.
const upstream = "docs/reference/wire-contract.md"

// dangling are the references in some files of a tree that lead nowhere, each
// with its file and line.
func dangling(tree fs.FS, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		text := string(data)
		report := func(at int, what string) {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, 1+strings.Count(text[:at], "\n"), what))
		}
		for _, at := range outside.FindAllStringIndex(text, -1) {
			report(at[0], strings.TrimLeft(text[at[0]:at[1]], " ("))
		}
		for _, m := range inTree.FindAllStringSubmatchIndex(text, -1) {
			target, anchor := text[m[4]:m[5]], group(text, m, 3)
			if name == upstream && !strings.HasPrefix(target, "docs/") || isLink(name, text, m[4]) {
				continue
			}
			if !exists(tree, target, anchor) {
				report(m[4], target+anchor)
			}
		}
		if strings.HasSuffix(name, ".md") {
			for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
				target := cmp.Or(group(text, m, 1), group(text, m, 2))
				if !followed(tree, name, target) {
					report(m[0], target)
				}
			}
		}
	}
	return found, nil
}

// group is a group of a match, empty when it is not in it.
func group(text string, match []int, n int) string {
	if match[2*n] < 0 {
		return ""
	}
	return text[match[2*n]:match[2*n+1]]
}

// isLink reports whether a path in a page is part of a link, which is relative
// to the page.
func isLink(name, text string, at int) bool {
	if !strings.HasSuffix(name, ".md") {
		return false
	}
	before := strings.TrimRight(text[:at], "./")
	return strings.HasSuffix(before, "](")
}

// followed reports whether a link of a page leads somewhere; other sites are
// not asked.
func followed(tree fs.FS, name, target string) bool {
	if regexp.MustCompile(`^[a-z]+:`).MatchString(target) {
		return true
	}
	file, anchor, has := strings.Cut(target, "#")
	if has {
		anchor = "#" + anchor
	}
	if file == "" {
		return exists(tree, name, anchor)
	}
	return exists(tree, path.Join(path.Dir(name), file), anchor)
}

// exists reports whether there is a file or directory, and the anchor in it
// when one is given.
func exists(tree fs.FS, name, anchor string) bool {
	if anchor == "" || !strings.HasSuffix(name, ".md") {
		_, err := fs.Stat(tree, name)
		return err == nil
	}
	data, err := fs.ReadFile(tree, name)
	return err == nil && slices.Contains(anchors(string(data)), strings.TrimPrefix(anchor, "#"))
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	id      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors are those of a page: the explicit ones, and those that GitHub makes of
// headings.
func anchors(page string) []string {
	page = fence.ReplaceAllString(page, "")
	var all []string
	for _, m := range id.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		title := linked.ReplaceAllString(id.ReplaceAllString(m[1], ""), "$1")
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if n := seen[slug]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", slug, n))
		} else {
			all = append(all, slug)
		}
		seen[slug]++
	}
	return all
}
