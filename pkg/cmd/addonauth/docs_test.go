package addonauth_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
)

// root is the top of the repository.
const root = "../../.."

// matches returns what a pattern's first group finds in the Go files below some
// directories, tests left out.
func matches(t *testing.T, pattern string, dirs ...string) []string {
	t.Helper()
	find := regexp.MustCompile(pattern)
	found := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, m := range find.FindAllStringSubmatch(string(data), -1) {
				found[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEveryReasonIsExplained keeps the troubleshooting page complete.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	page := read(t, "addons.md")
	reasons := slices.Concat(
		matches(t, `Reason[A-Z]\w*\s+= "([A-Z]\w+)"`,
			"pkg/names/addon.go", "pkg/registration/driver/csr", "pkg/registration/driver/token", "pkg/registration/agent/addon", "pkg/addon"),
		[]string{
			addons.ReasonNoRegistration, addons.ReasonDriverNotDeclared, addons.ReasonSubjectNotDeclared,
			addons.ReasonInfrastructureMissing, addons.ReasonTokenMissing, addons.ReasonCertificateMissing,
			addons.ReasonRequestNotApproved, addons.ReasonRequestNotIssued, addons.ReasonExpired, addons.ReasonRotationRequested,
		})
	for _, reason := range reasons {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("docs/addons.md does not explain reason %s", reason)
		}
	}
}

// TestTheAlertsAreAboutMetricsThatExist keeps the sample of alert rules usable.
func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "alerts-addons.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	metrics := matches(t, `"(ocm_[a-z_]+)"`, "pkg")
	count := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			count++
			if rule.Alert == "" || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("rule %q is not complete", rule.Alert)
			}
			for _, name := range regexp.MustCompile(`ocm_[a-z_]+`).FindAllString(rule.Expr, -1) {
				if !slices.Contains(metrics, name) {
					t.Errorf("rule %s is about %s, which nothing exports", rule.Alert, name)
				}
			}
		}
	}
	if count == 0 {
		t.Error("there are no rules")
	}
	for _, name := range metrics {
		if strings.HasPrefix(name, "ocm_addon_") && !strings.Contains(read(t, "addons.md"), "`"+name+"`") {
			t.Errorf("docs/addons.md does not tell of metric %s", name)
		}
	}
}
