// Command generate-cli-reference writes one page for each command of kubectl-ocm.
// go generate runs it; a page of a command that is gone is removed. With -man DIR it
// writes manual pages to a directory, dated by SOURCE_DATE_EPOCH; a release has them.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
)

//go:generate go run .

// dir is where the pages go.
const dir = "../../docs/reference/cli"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate-cli-reference:", err)
		os.Exit(1)
	}
}

func run() error {
	man := flag.String("man", "", "Directory to write manual pages to, instead of the reference")
	flag.Parse()
	root := cmd.New(cmd.Env{Name: "kubectl ocm", Clock: clock.RealClock{}, Getenv: func(string) string { return "" }})
	root.DisableAutoGenTag = true
	prepare(root)
	if *man != "" {
		return manual(root, *man)
	}
	return reference(root)
}

// reference writes the pages of docs/reference/cli.
func reference(root *cobra.Command) error {
	if err := replace(dir, "*.md"); err != nil {
		return err
	}
	return doc.GenMarkdownTree(root, dir)
}

// manual writes the manual pages.
func manual(root *cobra.Command, dir string) error {
	if err := replace(dir, "*.1"); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Source: "kubectl ocm " + buildinfo.Version, Manual: "kubectl ocm"}
	return doc.GenManTree(root, header, dir)
}

// replace makes a directory without the pages of an earlier run.
func replace(dir, pages string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	stale, err := filepath.Glob(filepath.Join(dir, pages))
	if err != nil {
		return err
	}
	for _, page := range stale {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	return nil
}

// prepare leaves out of every page what help shows by itself, and sets a text
// off that is laid out in columns.
func prepare(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	if c.Long != "" {
		c.Long = "```\n" + strings.TrimSpace(c.Long) + "\n```"
	}
	for _, child := range c.Commands() {
		prepare(child)
	}
}
