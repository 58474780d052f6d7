// Command generate-cli-reference writes one page for each command of kubectl-ocm.
// go generate runs it; a page of a command that is gone is removed.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
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
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	stale, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, page := range stale {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	root := cmd.New(cmd.Env{Name: "kubectl ocm", Clock: clock.RealClock{}, Getenv: func(string) string { return "" }})
	root.DisableAutoGenTag = true
	prepare(root)
	return doc.GenMarkdownTree(root, dir)
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
