package extauthz_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/extauthz/verdict"
)

// page is docs/token-exchange.md.
func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/token-exchange.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reasons are all that package verdict has.
func reasons(t *testing.T) []verdict.Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "verdict/verdict.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []verdict.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Reason" || spec.Names[0].Name == "RateLimited" {
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, verdict.Reason(text))
				}
			}
		}
		return true
	})
	if len(found) < 20 {
		t.Fatalf("only %v were found", found)
	}
	return found
}

// TestEveryReasonIsExplained keeps the table of reasons complete and right.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	status := map[verdict.Class]int{
		verdict.Unauthenticated: 401, verdict.Forbidden: 403, verdict.Limited: 429, verdict.Unavailable: 503,
	}
	text, all := page(t), reasons(t)
	for _, reason := range all {
		row := fmt.Sprintf("\n| `%s` | %d |", reason, status[reason.Class()])
		if strings.Count(text, row) != 1 {
			t.Errorf("docs/token-exchange.md must have one row that begins with %q", row[1:])
		}
	}
	for _, row := range regexp.MustCompile("\n\\| `([a-z_]+)` \\| [0-9]{3} \\|").FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, verdict.Reason(row[1])) {
			t.Errorf("docs/token-exchange.md explains %s, which nothing says", row[1])
		}
	}
}

// metrics are those that any file of this tree registers.
func metrics(t *testing.T) []string {
	t.Helper()
	var names []string
	find := regexp.MustCompile(`(?:[pP]refix \+ "|"ocm_extauthz_|\bname\(")([a-z_]+)"`)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if !strings.Contains(string(data), "prometheus") {
			return err
		}
		for _, m := range find.FindAllStringSubmatch(string(data), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 5 {
		t.Fatalf("only %v were found", names)
	}
	return names
}

func TestEveryMetricIsTold(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, name := range metrics(t) {
		if !strings.Contains(text, "`"+name+"{") && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/token-exchange.md does not tell of the metric %s", name)
		}
	}
}

// TestTheAlertsAreAboutMetricsThatExist keeps the sample of alert rules usable.
func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/alerts-token-exchange.yaml")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	known := metrics(t)
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || rule.Annotations["summary"] == "" || rule.Annotations["runbook"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("rule %q is not complete", rule.Alert)
			}
			for _, name := range regexp.MustCompile(`ocm_extauthz_([a-z_]+)`).FindAllStringSubmatch(rule.Expr, -1) {
				if !slices.Contains(known, name[1]) {
					t.Errorf("rule %s is about %s, which nothing exports", rule.Alert, name[0])
				}
			}
		}
	}
	if len(file.Groups) == 0 {
		t.Error("there are no rules")
	}
}

// TestLinks keeps the page's links to files alive.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(page(t), -1) {
		if _, err := os.Stat(filepath.Join("../../docs", link[1])); err != nil {
			t.Errorf("%v", err)
		}
	}
}
