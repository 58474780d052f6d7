package docs

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
)

// Path returns the path of a file below docs/.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(root(tb), "docs", name)
}

// Page returns a file below docs/.
func Page(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(Path(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// Matches returns what a pattern's first group finds, sorted and each once, in
// the Go files below directories of the repository, tests left out.
func Matches(tb testing.TB, pattern string, dirs ...string) []string {
	tb.Helper()
	find := regexp.MustCompile(pattern)
	code := os.DirFS(root(tb))
	found := map[string]bool{}
	for _, dir := range dirs {
		err := fs.WalkDir(code, dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := fs.ReadFile(code, path)
			for _, m := range find.FindAllStringSubmatch(string(data), -1) {
				found[m[1]] = true
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// CheckAlerts fails for every alert rule of a sample below docs/ that lacks its
// severity or one of some annotations, or that uses a metric of ours that is not in
// known.
func CheckAlerts(tb testing.TB, name string, known []string, annotations ...string) {
	tb.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(Page(tb, name)), &file); err != nil {
		tb.Fatal(err)
	}
	count := 0
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			count++
			r.check(tb, known, annotations)
		}
	}
	if count == 0 {
		tb.Error("there are no rules")
	}
}

// rule is an alert rule of Prometheus.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (r *rule) check(tb testing.TB, known, annotations []string) {
	tb.Helper()
	if r.Alert == "" || r.Labels["severity"] == "" {
		tb.Errorf("rule %q is not complete", r.Alert)
	}
	for _, name := range annotations {
		if r.Annotations[name] == "" {
			tb.Errorf("rule %q has no %s", r.Alert, name)
		}
	}
	for _, metric := range regexp.MustCompile(`ocm_[a-z_]+`).FindAllString(r.Expr, -1) {
		if !slices.Contains(known, metric) {
			tb.Errorf("rule %s is about %s, which nothing exports", r.Alert, metric)
		}
	}
}

// root is the top of the repository.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("the test is in no Go module")
		}
	}
}
