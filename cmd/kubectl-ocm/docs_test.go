//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedCommands keeps the commands of all pages that users read, of the
// alert rules and of the demo real: every command is known, and every flag is one
// of its own.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, page := range userPages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range documented(string(data)) {
			words := strings.Fields(line)
			help := helpOf(t, words)
			for _, word := range words {
				flag, _, _ := strings.Cut(word, "=")
				if flag = strings.TrimRight(flag, "`,.;:)"); strings.HasPrefix(flag, "--") && !hasFlag(help, flag) {
					t.Errorf("%s: %q has no flag %s", page, line, flag)
				}
			}
			seen++
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands were found", seen)
	}
}

// userPages are the files whose commands users run, but for the command
// reference, which is generated.
func userPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"../../README.md", "../../scripts/demo-tokens.sh"}
	for _, pattern := range []string{"*.md", "guides/*.md", "reference/*.md", "reference/alerts/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("../../docs", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// documented are the commands in a text, up to a pipe or the end of the quote.
func documented(text string) []string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var out []string
	for _, m := range regexp.MustCompile("kubectl ocm ([a-z][^\n|<>`\"$#]*)").FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSpace(m[1]))
	}
	return out
}

// helpOf is the help of the command that begins with words.
func helpOf(t *testing.T, words []string) string {
	t.Helper()
	var command []string
	for _, word := range words {
		if !regexp.MustCompile(`^[a-z-]+$`).MatchString(word) || strings.HasPrefix(word, "-") {
			break
		}
		command = append(command, word)
	}
	for n := len(command); n > 0; n-- {
		// TestMain puts it into the PATH.
		out, err := exec.CommandContext(t.Context(), "kubectl-ocm", append(slices.Clone(command[:n]), "--help")...).Output()
		if err == nil {
			if n < len(words) && strings.Contains(string(out), "\nCommands:\n") {
				t.Errorf("%q is no command of %q", words[n], strings.Join(command[:n], " "))
			}
			return string(out)
		}
	}
	t.Errorf("there is no command %q", strings.Join(words, " "))
	return ""
}

// hasFlag reports whether a help has a flag; kubectl's connection flags, which
// it does not list, are everybody's.
func hasFlag(help, flag string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(help)
}
