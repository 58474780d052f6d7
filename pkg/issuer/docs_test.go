package issuer_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryReasonIsExplained keeps the tables of the two pages complete, and
// those of metrics with them.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		data, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	pages := read("docs/reference/registration-agent.md") + read("docs/reference/registration-hub.md")
	found := 0
	for _, source := range []struct{ file, pattern string }{
		{"pkg/names/issuer.go", `Reason\w+\s+= "(\w+)"`},
		{"pkg/issuer/publish/metrics.go", `Name: "(\w+)"`},
		{"pkg/issuer/trust/metrics.go", `Name: "(\w+)"`},
	} {
		for _, m := range regexp.MustCompile(source.pattern).FindAllStringSubmatch(read(source.file), -1) {
			found++
			if !strings.Contains(pages, "`"+m[1]) {
				t.Errorf("the docs do not explain %s", m[1])
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d names were found", found)
	}
}
