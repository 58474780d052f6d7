//go:build linux

package cmd_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd"
)

// TestHelpFitsATerminal reads the help of every command that help shows.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	root := cmd.New(cmd.Env{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, Name: "kubectl ocm", Clock: clock.RealClock{},
		Getenv: func(string) string { return "" },
	})
	read := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		out.Reset()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		read++
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s --help: %q is %d columns wide", c.CommandPath(), line, utf8.RuneCountInString(line))
			}
		}
		for _, child := range c.Commands() {
			if child.IsAvailableCommand() {
				walk(child)
			}
		}
	}
	walk(root)
	if read < 80 {
		t.Errorf("only %d commands have help", read)
	}
}
