package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCheck finds each word where it counts, and nothing elsewhere.
func TestCheck(t *testing.T) {
	t.Parallel()
	g := &glossary{
		Text:  []entry{{Found: "told", Write: "reported", Except: []string{"excepted"}}},
		Names: []entry{{Found: "told", Write: "reported"}, {Found: "keep", Whole: true, Write: "stored"}},
	}
	if err := compile(g.Text, wholeWords); err != nil {
		t.Fatal(err)
	}
	if err := compile(g.Names, wholeName); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, content string
		lines         []int
	}{
		"a string":              {"a.go", "package a\n\nvar x = `a\nTold b`\n", []int{4}},
		"a comment":             {"a.go", "package a\n\n// is told here.\n", []int{3}},
		"a longer word":         {"a.go", "package a\n\n// is untold, toldest, a_told_b\n", nil},
		"a function":            {"a.go", "package a\n\nfunc lastTold() {}\n", []int{3}},
		"a type's field":        {"a.go", "package a\n\ntype a struct {\n\tTold int `json:\"told\"`\n}\n", []int{4}},
		"a tag":                 {"a.go", "package a\n\ntype a struct {\n\tx int `json:\"told\"`\n}\n", nil},
		"a whole name":          {"a.go", "package a\n\nfunc keep() {}\n\nfunc keepAlive() {}\n", []int{3}},
		"a local variable":      {"a.go", "package a\n\nfunc a() {\n\tvar told int\n\t_ = told\n}\n", nil},
		"an import":             {"a.go", "package a\n\nimport _ \"x/told\"\n", nil},
		"a test's text":         {"a_test.go", "package a\n\n// told\nvar x = \"told\"\n", nil},
		"a test's name":         {"a_test.go", "package a\n\nfunc TestTold() {}\n", []int{3}},
		"a file's name":         {"was-told.yaml", "a: b\n", []int{1}},
		"a page":                {"a.md", "x\n\nIt told.\n", []int{3}},
		"the code of a page":    {"a.md", "x `told`\n\n```\ntold\n```\n\ntold\n", []int{7}},
		"a script":              {"a.sh", "# told\n", []int{1}},
		"a file of another use": {"a.json", "told", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), tc.file)
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := g.check(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(tc.lines) {
				t.Fatalf("found %v, want lines %v", found, tc.lines)
			}
			for i, f := range found {
				if f.line != tc.lines[i] {
					t.Errorf("found %v, want line %d", f, tc.lines[i])
				}
			}
		})
	}
}

// TestSkips passes over what is not ours, and over what is not clean yet unless it
// is asked for.
func TestSkips(t *testing.T) {
	t.Parallel()
	g := &glossary{Skip: []string{"theirs"}, Unclean: []string{"later"}}
	for _, tc := range []struct {
		file  string
		named bool
		want  bool
	}{
		{"ours/a.go", false, false},
		{"theirs/a.go", true, true},
		{"theirs2/a.go", false, false},
		{"later/a.go", false, true},
		{"later/a.go", true, false},
		{"ours/testdata/a.yaml", true, true},
	} {
		if got := g.skips(tc.file, tc.named); got != tc.want {
			t.Errorf("%s is passed over: %v", tc.file, got)
		}
	}
}
