package changelog

import (
	"fmt"
	"regexp"
	"strings"
)

// Section returns what a changelog says about a version, without its heading. A heading
// is the version by itself, in brackets, or followed by a date.
func Section(text, version string) (string, error) {
	var section []string
	inside := false
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if inside {
				break
			}
			word, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			inside = strings.Trim(word, "[]") == version
			continue
		}
		if inside {
			section = append(section, line)
		}
	}
	content := strings.TrimSpace(strings.Join(section, ""))
	if content == "" {
		return "", fmt.Errorf("the changelog says nothing about %s: add the section \"## %s\"", version, version)
	}
	return content + "\n", nil
}

// relative matches links to files of the repository.
var relative = regexp.MustCompile(`\]\(([^):#]+(?:#[^)]*)?)\)`)

// Absolute returns a text whose links to files of the repository lead to those below an
// address.
func Absolute(text, address string) string {
	return relative.ReplaceAllString(text, "]("+address+"/$1)")
}
