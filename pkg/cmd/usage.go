package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// usage prints how a command is called: the synopsis, examples, subcommands by
// section and flags as kubectl prints them. Other than kubectl's own template it
// fits 80 columns without a terminal and keeps the order of the commands.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	section := func(title, format string, args ...any) {
		_, _ = fmt.Fprintf(&text, "\n%s\n"+format+"\n", append([]any{title}, args...)...)
	}
	_, _ = fmt.Fprintf(&text, "Usage:\n  %s\n", cmd.UseLine())
	if aliases := cli.Aliases(cmd); len(aliases) > 0 {
		section("Aliases:", "  %s", strings.Join(aliases, ", "))
	}
	if cmd.HasExample() {
		section("Examples:", "%s", cmd.Example)
	}
	for _, group := range append(cmd.Groups(), &cobra.Group{Title: "Commands:"}) {
		if list := commandsOf(cmd, group.ID); list != "" {
			section(group.Title, "%s", list)
		}
	}
	if cmd.HasAvailableLocalFlags() {
		section("Flags:", "%s", flagsOf(cmd.LocalFlags()))
	}
	if cmd.HasAvailableInheritedFlags() {
		section("Flags of every command (kubectl's other connection flags work too):", "%s", flagsOf(cmd.InheritedFlags()))
	}
	if cmd.HasAvailableSubCommands() {
		_, _ = fmt.Fprintf(&text, "\nMore about a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), text.String())
	return err
}

// commandsOf lists the subcommands of a section in the order in which they were
// given; cobra sorts them by name.
func commandsOf(cmd *cobra.Command, group string) string {
	children := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() && c.Name() != "help" })
	slices.SortStableFunc(children, func(a, b *cobra.Command) int {
		return cmp.Compare(a.Annotations[cli.OrderAnnotation], b.Annotations[cli.OrderAnnotation])
	})
	pad := 0
	for _, c := range children {
		pad = max(pad, len(c.Name()))
	}
	var lines []string
	for _, c := range children {
		if c.GroupID == group {
			lines = append(lines, fmt.Sprintf("  %-*s  %s", pad, c.Name(), c.Short))
		}
	}
	return strings.Join(lines, "\n")
}

// flagsOf lists flags, with the explanation in the line below each.
func flagsOf(set *pflag.FlagSet) string {
	var text strings.Builder
	printer := templates.NewHelpFlagPrinter(&text, cli.Columns)
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			printer.PrintHelpFlag(f)
		}
	})
	return strings.TrimRight(text.String(), "\n")
}
