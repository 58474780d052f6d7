// Package pkg_test holds the architecture of the module as a test: which
// package may import which, and which third-party library may be used where.
package pkg_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kubectl-ocm/kubectl-ocm/"

// The layers, lowest first. A package may import what its entry in imports
// names; every lower layer is listed there by one of these.
var (
	leaves   = []string{"pkg/names", "pkg/apis", "pkg/helpers"}
	pure     = slices.Concat(leaves, []string{"pkg/apply", "pkg/credential", "pkg/keytrust", "pkg/finding", "manifests"})
	contract = slices.Concat(pure, []string{"pkg/hubclient", "pkg/origin", "pkg/registration/driver", "pkg/bootstrap"})
)

// imports is the dependency map of the module. A package may import its own
// tree and the trees its entry names, and nothing else of ours; the longest
// matching entry wins. A package without an entry fails the test, so the map
// stays complete and can be read as the architecture.
var imports = map[string][]string{
	"pkg/names":   {},
	"pkg/apis":    {},
	"pkg/helpers": {"pkg/names", "pkg/apis"},

	"manifests":      leaves,
	"pkg/apply":      leaves,
	"pkg/credential": leaves,
	"pkg/keytrust":   leaves,
	"pkg/finding":    leaves,
	"pkg/origin":     slices.Concat(leaves, []string{"pkg/apply"}),

	"pkg/hubclient":           leaves,
	"pkg/registration/driver": slices.Concat(pure, []string{"pkg/hubclient"}),
	"pkg/bootstrap":           pure,

	// The catalog names every driver, for those who pass it on.
	"pkg/registration/drivers": contract,

	"pkg/install": contract,
	// A join with the connection of the hub's administrator accepts the cluster as well.
	"pkg/install/join":     slices.Concat(contract, []string{"pkg/install", "pkg/registration/approval", "pkg/registration/hubaddress"}),
	"pkg/operator":         contract,
	"pkg/registration/hub": contract,
	// Accepting a cluster reads and settles the records of its grants.
	"pkg/registration/approval": slices.Concat(contract, []string{"pkg/registration/hub/grant"}),
	"pkg/registration/agent":    contract,
	// Where managed clusters reach a hub, for the commands and checks that print it.
	"pkg/registration/hubaddress": contract,
	// What a cluster waits for is in its requests, its grants and its conditions.
	"pkg/registration/inventory": slices.Concat(contract, []string{"pkg/registration/approval", "pkg/registration/hub/grant", "pkg/registration/hub/census"}),
	"pkg/addon":                  slices.Concat(contract, []string{"pkg/work/manifest"}),
	// Requests of add-ons are in the states of requests of clusters.
	"pkg/addon/inventory": slices.Concat(contract, []string{"pkg/registration/approval"}),
	// These act on the add-ons that the inventory lists.
	"pkg/addon/cleanup":      slices.Concat(leaves, []string{"pkg/addon/inventory"}),
	"pkg/addon/driverswitch": slices.Concat(contract, []string{"pkg/addon/inventory"}),
	"pkg/addon/permissions":  slices.Concat(leaves, []string{"pkg/addon/inventory"}),
	"pkg/addon/rotation":     slices.Concat(leaves, []string{"pkg/addon/inventory"}),
	"pkg/webhook":            contract,
	"pkg/issuer":             contract,
	"pkg/tokenauthorizer":    contract,
	"pkg/imagepull":          contract,
	// Commands refresh and remove pull secrets without the controller.
	"pkg/imagepull/refresh": slices.Concat(contract, []string{"pkg/imagepull", "pkg/imagepull/inventory"}),
	"pkg/imagepull/removal": slices.Concat(contract, []string{"pkg/imagepull", "pkg/imagepull/legacy"}),
	"pkg/legacytoken":       contract,
	"pkg/local":             leaves,
	"pkg/servingcert":       contract,
	"pkg/work":              contract,
	// What a ManifestWork says and what is reported about it are pure rules.
	"pkg/work/manifest": leaves,
	"pkg/work/status":   slices.Concat(leaves, []string{"pkg/work/manifest"}),
	"pkg/work/report":   slices.Concat(leaves, []string{"pkg/work/manifest"}),
	"pkg/work/delivery": slices.Concat(pure, []string{"pkg/work/manifest", "pkg/work/report"}),

	// Checks read what the subsystems write. Each knows those that it is about.
	"pkg/diagnose": slices.Concat(contract, []string{"pkg/install", "pkg/registration/hub/grant"}),
	"pkg/diagnose/hub": slices.Concat(contract, []string{
		"pkg/diagnose", "pkg/install", "pkg/registration/hub/census", "pkg/registration/hubaddress", "pkg/addon/inventory", "pkg/operator/clustermanager",
	}),
	"pkg/diagnose/agent": slices.Concat(contract, []string{"pkg/diagnose", "pkg/install", "pkg/operator/klusterlet"}),
	"pkg/diagnose/cluster": slices.Concat(contract, []string{
		"pkg/diagnose", "pkg/install", "pkg/registration/approval", "pkg/registration/inventory", "pkg/addon/inventory",
	}),
	"pkg/diagnose/work": slices.Concat(contract, []string{
		"pkg/diagnose", "pkg/install", "pkg/registration/inventory", "pkg/work/delivery", "pkg/work/report",
	}),
	"pkg/diagnose/pullsecrets": slices.Concat(contract, []string{"pkg/diagnose", "pkg/imagepull"}),
	"pkg/diagnose/tokens": slices.Concat(contract, []string{
		"pkg/diagnose", "pkg/install", "pkg/tokenauthorizer/config", "pkg/tokenauthorizer/issuers", "pkg/tokenauthorizer/policy",
	}),

	"pkg/cmd":                    {"pkg", "manifests"},
	"cmd/kubectl-ocm":            {"pkg/cmd", "pkg/helpers/roots"},
	"cmd/generate-cli-reference": {"pkg/cmd", "pkg/helpers/buildinfo"},

	// Test support may use anything, and nothing but tests may use it.
	"pkg/test":         {"pkg", "manifests"},
	"scripts":          {"pkg/names"},
	"scripts/testpool": {"pkg/test/controlplane"},
	"bench":            {"pkg", "manifests"},
	"e2e":              {"pkg", "manifests"},
}

// siblings lists the trees whose direct children must not import each other,
// an internal directory aside: that is where they meet. A child may import
// another one that its own entry in imports names.
var siblings = []string{
	"pkg/cmd/", "pkg/operator/", "pkg/registration/driver/", "pkg/registration/hub/", "pkg/helpers/", "pkg/addon/",
	"pkg/imagepull/",
}

// owners confines a third-party dependency to the packages that wrap it; an
// empty list forbids it.
var owners = map[string][]string{
	"github.com/spf13/":        {"pkg/cmd", "cmd", "pkg/registration/driver", "pkg/test/components"},
	"k8s.io/cli-runtime/":      {"pkg/cmd"},
	"k8s.io/kubectl/":          {"pkg/cmd"},
	"github.com/AlecAivazis/":  {"pkg/cmd"},
	"github.com/aws/":          {"pkg/registration/driver/awsirsa", "pkg/cmd/aws", "pkg/test/aws"},
	"github.com/envoyproxy/":   {"pkg/tokenauthorizer/server", "pkg/test/extauthzproxy", "e2e"},
	"google.golang.org/grpc":   {"pkg/tokenauthorizer/server", "pkg/test/extauthzproxy", "e2e"},
	"github.com/go-jose/":      {"pkg/helpers/jwk", "pkg/test/aws"},
	"github.com/google/cel-go": {"pkg/work/status"},
	"github.com/itchyny/":      {"pkg/work/agent/strategy"},
	"k8s.io/apiserver/":        {"pkg/work/status"},
	"k8s.io/kubelet/":          {"pkg/imagepull/kubelet"},
	"k8s.io/kubernetes/":       {},
	"go.etcd.io/":              {},
	"github.com/openshift/":    {},
	"github.com/pkg/errors":    {},
	"github.com/onsi/":         {},
	"github.com/stretchr/":     {},
	"k8s.io/client-go/testing": {},
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if len(p.GoFiles) == 0 { // Only tests, such as this package.
			continue
		}
		tree, ok := entryFor(from)
		if !ok {
			t.Errorf("%s has no entry in imports: say what it may import", from)
			continue
		}
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, module); ours {
				checkOurs(t, from, to, tree)
				continue
			}
			checkTheirs(t, from, imp)
		}
	}
}

// TestAgentKnowsNoDriver keeps the drivers sealed: what a credential consists of is
// theirs to know, and neither the agent's code nor its imports name one.
func TestAgentKnowsNoDriver(t *testing.T) {
	t.Parallel()
	const agent = "pkg/registration/agent"
	for _, p := range listPackages(t) {
		if !within(strings.TrimPrefix(p.ImportPath, module), []string{agent}) {
			continue
		}
		for _, imp := range p.Imports {
			to := strings.TrimPrefix(imp, module)
			if strings.HasPrefix(to, "pkg/registration/driver/") {
				t.Errorf("%s may not import %s", p.ImportPath, to)
			}
		}
		for _, file := range p.GoFiles {
			for _, word := range wordsOf(t, filepath.Join(p.Dir, file)) {
				if slices.Contains([]string{"KeyTLSCert", "KeyTLSKey", "KeyToken", "TLSCertKey", "TLSPrivateKeyKey", "ClientCertificate", "ClientKey"}, word) {
					t.Errorf("%s/%s names %s: only a driver knows what its credential consists of", p.ImportPath, file, word)
				}
			}
		}
	}
}

// TestProviderIsNamedByItsDriver keeps the seam of the registration drivers closed: what is
// about one provider is in the folder of its driver, in the catalog, and in the command that
// prepares an account of that provider.
func TestProviderIsNamedByItsDriver(t *testing.T) {
	t.Parallel()
	own := []string{"pkg/registration/driver/awsirsa", "pkg/registration/drivers", "pkg/cmd/aws", "pkg/test/aws", "pkg/helpers/awsarn"}
	word := regexp.MustCompile(`AWS|IRSA|EKS`)
	for _, p := range listPackages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if within(from, own) || !within(from, []string{"pkg", "cmd", "manifests"}) {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if word.MatchString(line) {
					t.Errorf("%s/%s:%d names a provider: %s", from, file, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}

// wordsOf returns the identifiers of a Go file.
func wordsOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			words = append(words, id.Name)
		}
		return true
	})
	return words
}

func checkOurs(t *testing.T, from, to, tree string) {
	t.Helper()
	if !within(to, slices.Concat(imports[tree], []string{tree})) {
		t.Errorf("%s may not import %s", from, to)
	}
	if within(to, []string{"pkg/test"}) && !within(from, []string{"pkg/test", "bench", "e2e", "scripts/testpool"}) {
		t.Errorf("%s may not import %s outside its tests", from, to)
	}
	if parent, ok := crosses(from, to); ok && !slices.Contains(imports[tree], to) {
		t.Errorf("%s may not import its sibling %s under %s", from, to, parent)
	}
}

func checkTheirs(t *testing.T, from, imp string) {
	t.Helper()
	for dep, wrappers := range owners {
		if strings.HasPrefix(imp, dep) && !within(from, wrappers) {
			t.Errorf("%s may not import %s: only %v may", from, imp, wrappers)
		}
	}
}

// TestHelpersHasNoFiles keeps pkg/helpers a folder of nouns: a file in the
// folder itself would be the beginning of a grab-bag.
func TestHelpersHasNoFiles(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if p.ImportPath == module+"pkg/helpers" {
			t.Error("pkg/helpers has Go files: give what they do a noun of its own below it")
		}
	}
}

type goPackage struct {
	Dir        string
	ImportPath string
	GoFiles    []string
	Imports    []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=Dir,ImportPath,GoFiles,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("decoding go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func within(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

// entryFor returns the longest tree in imports that holds path.
func entryFor(path string) (tree string, ok bool) {
	for candidate := range imports {
		if within(path, []string{candidate}) && len(candidate) >= len(tree) {
			tree, ok = candidate, true
		}
	}
	return tree, ok
}

// crosses reports whether from and to are different children of a tree whose
// children must not know each other. The drivers' conformance suite is theirs
// in common.
func crosses(from, to string) (tree string, ok bool) {
	for _, tree := range siblings {
		a, okA := strings.CutPrefix(from, tree)
		b, okB := strings.CutPrefix(to, tree)
		if okA && okB && first(a) != first(b) && first(b) != "internal" {
			return tree, true
		}
	}
	return "", false
}

func first(path string) string {
	head, _, _ := strings.Cut(path, "/")
	return head
}
