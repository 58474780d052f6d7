package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// glossary is words.yaml.
type glossary struct {
	// Text is checked in what users read and in comments.
	Text []entry `json:"text"`
	// Names is checked in the words of declared names and of file names.
	Names []entry `json:"names"`
	// Skip are the folders whose words are not ours, or are data of tests.
	Skip []string `json:"skip"`
	// Unclean are the trees that still have such words. A path on the command
	// line is checked all the same.
	Unclean []string `json:"unclean"`
}

// entry is one word.
type entry struct {
	// Found is a regular expression, for whole words in any case.
	Found string `json:"found"`
	Write string `json:"write"`
	// Whole is set for what is wrong only as a whole name.
	Whole bool `json:"whole"`
	// Except are the files, by prefix, in which the word is a term.
	Except []string `json:"except"`

	pattern *regexp.Regexp
}

// finding is one place where a word stands.
type finding struct {
	file  string
	line  int
	where string
	found string
	write string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s has %q: write %s", f.file, f.line, f.where, f.found, f.write)
}

const (
	wholeWords = `(?i)\b(?:%s)\b`
	wholeName  = `^(?:%s)$`
)

func compile(entries []entry, form string) error {
	for i := range entries {
		pattern, err := regexp.Compile(fmt.Sprintf(form, entries[i].Found))
		if err != nil {
			return err
		}
		entries[i].pattern = pattern
	}
	return nil
}

func (g *glossary) skips(file string, named bool) bool {
	within := func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }
	return slices.ContainsFunc(g.Skip, within) || !named && slices.ContainsFunc(g.Unclean, within) ||
		slices.Contains(strings.Split(file, "/"), "testdata")
}

// check reads one file. In a test's file only names count: its text and its
// comments reach no user.
func (g *glossary) check(file string) ([]finding, error) {
	extension := filepath.Ext(file)
	if !slices.Contains([]string{".go", ".md", ".yaml", ".tpl", ".sh"}, extension) {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := g.inNames(file, 1, "the file's name", strings.TrimSuffix(filepath.Base(file), extension))
	switch extension {
	case ".go":
		inSource, err := g.inSource(file, data)
		return append(found, inSource...), err
	case ".md":
		return append(found, g.inText(file, 1, "the page", withoutCode(string(data)))...), nil
	}
	return append(found, g.inText(file, 1, "the file", string(data))...), nil
}

// inText finds words in text that starts at the line.
func (g *glossary) inText(file string, line int, where, text string) []finding {
	var found []finding
	for _, e := range g.Text {
		if e.excepted(file) {
			continue
		}
		for _, at := range e.pattern.FindAllStringIndex(text, -1) {
			found = append(found, finding{
				file: file, line: line + strings.Count(text[:at[0]], "\n"), where: where, found: text[at[0]:at[1]], write: e.Write,
			})
		}
	}
	return found
}

// inNames finds words among the words of a name: heldBack has "held" and "back".
func (g *glossary) inNames(file string, line int, where, name string) []finding {
	var found []finding
	for _, e := range g.Names {
		words := split(name)
		if e.Whole {
			words = []string{name}
		}
		if !e.excepted(file) && slices.ContainsFunc(words, e.pattern.MatchString) {
			found = append(found, finding{file: file, line: line, where: where, found: name, write: e.Write})
		}
	}
	return found
}

func (e entry) excepted(file string) bool {
	return slices.ContainsFunc(e.Except, func(prefix string) bool { return strings.HasPrefix(file, prefix) })
}

// camel ends a word of a name: before a capital that follows a small letter, and
// before the last capital of several that a small letter follows.
var camel = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// split returns the words of a name in lower case.
func split(name string) []string {
	spaced := camel.ReplaceAllString(name, "$1$3 $2$4")
	return strings.FieldsFunc(strings.ToLower(spaced), func(r rune) bool { return r == ' ' || r == '_' || r == '-' || r == '.' })
}

// fence is a block of code in a page, code a piece of it in a line.
var (
	fence = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
	code  = regexp.MustCompile("`[^`\n]*`")
)

// withoutCode blanks the code of a page and keeps its lines.
func withoutCode(page string) string {
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
	return code.ReplaceAllStringFunc(fence.ReplaceAllStringFunc(page, blank), blank)
}
