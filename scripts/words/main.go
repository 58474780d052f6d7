// Command words finds words that the project does not use: in the text that
// users read, in comments and in declared names. words.yaml is the list, with
// what to write instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout) //nolint:forbidigo // a main has no other
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1) //nolint:forbidigo // a main says how it went
	}
}

// run prints the findings below the given paths, or of the whole project, and
// returns an error if there are any.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("words", flag.ContinueOnError)
	list := flags.String("list", "scripts/words/words.yaml", "File with the words")
	if err := flags.Parse(args); err != nil {
		return err
	}
	words, err := load(*list)
	if err != nil {
		return err
	}
	files, err := tracked(ctx, flags.Args())
	if err != nil {
		return err
	}
	found := 0
	for _, file := range files {
		if words.skips(file, flags.NArg() > 0) {
			continue
		}
		findings, err := words.check(file)
		if err != nil {
			return err
		}
		for _, f := range findings {
			fmt.Fprintln(out, f)
		}
		found += len(findings)
	}
	if found > 0 {
		return fmt.Errorf("found %d; %s says what to write", found, *list)
	}
	return nil
}

// load reads and compiles the list.
func load(path string) (*glossary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	g := &glossary{}
	if err := yaml.UnmarshalStrict(data, g); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, errors.Join(compile(g.Text, wholeWords), compile(g.Names, wholeName))
}

// tracked returns the files that git knows, below the paths if there are any.
func tracked(ctx context.Context, paths []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"ls-files", "--"}, paths...)...).Output() //nolint:gosec // a developer's own paths
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" }), nil
}
