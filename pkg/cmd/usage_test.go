//go:build linux

package cmd_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// TestMistakesReadPlainly gives every flag of every command a value that it cannot have: no
// word of the libraries that find it reaches the user.
func TestMistakesReadPlainly(t *testing.T) {
	t.Parallel()
	raw := regexp.MustCompile(`strconv|parsing|invalid (argument|syntax)|arg\(s\)|\btime: `)
	tried := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Set("@@") == nil || c.DisableFlagParsing {
				return
			}
			tried++
			var out bytes.Buffer
			args := append(strings.Fields(c.CommandPath())[2:], "--"+f.Name+"=@@")
			code := cmd.Execute(t.Context(), silentEnv(&out), args)
			if text := out.String(); code != 2 || raw.MatchString(text) || !strings.HasPrefix(text, "Error: --"+f.Name+": \"@@\" ") {
				t.Errorf("%s: code %d, %s", strings.Join(args, " "), code, text)
			}
		})
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(cmd.New(silentEnv(&bytes.Buffer{})))
	if tried < 100 {
		t.Errorf("only %d flags were tried", tried)
	}
}

func silentEnv(out *bytes.Buffer) cmd.Env {
	return cmd.Env{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out}, Name: "kubectl ocm", Clock: clock.RealClock{},
		Getenv: func(string) string { return "" },
	}
}
