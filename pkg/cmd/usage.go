package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// width is how wide help is: that of a terminal nobody has changed.
const width = 80

// usage prints how a command is called: the synopsis, examples, subcommands by
// section and flags, each flag's text below it so that nothing is cut off.
func usage(cmd *cobra.Command) error {
	w := &lines{}
	w.add("Usage:")
	w.add("  %s", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		w.section("Aliases:")
		w.add("  %s", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.HasExample() {
		w.section("Examples:")
		w.add("%s", cmd.Example)
	}
	w.commands(cmd)
	if cmd.HasAvailableLocalFlags() {
		w.section("Flags:")
		w.flags(cmd.LocalFlags())
	}
	if cmd.HasAvailableInheritedFlags() {
		w.section("Flags of every command (kubectl's other connection flags work too):")
		w.flags(cmd.InheritedFlags())
	}
	if cmd.HasAvailableSubCommands() {
		w.add("")
		w.add("More about a command: %s COMMAND --help", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), w.text.String())
	return err
}

// lines collects a usage text.
type lines struct{ text strings.Builder }

func (l *lines) add(format string, args ...any) {
	_, _ = fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *lines) section(title string) { l.add("\n%s", title) }

// commands lists the subcommands, those of a section together.
func (l *lines) commands(cmd *cobra.Command) {
	children := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() && c.Name() != "help" })
	// cobra sorts by name; a section shows the order in which one uses it.
	slices.SortStableFunc(children, func(a, b *cobra.Command) int {
		return cmp.Compare(a.Annotations[cli.OrderAnnotation], b.Annotations[cli.OrderAnnotation])
	})
	pad := 0
	for _, c := range children {
		pad = max(pad, len(c.Name()))
	}
	list := func(title, group string) {
		first := true
		for _, c := range children {
			if c.GroupID != group {
				continue
			}
			if first {
				l.section(title)
				first = false
			}
			l.add("  %-*s  %s", pad, c.Name(), c.Short)
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	list("Commands:", "")
}

// flags lists flags, with the explanation in the line below each.
func (l *lines) flags(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		text := f.Usage
		if value := placeholder(f); value != "" {
			name += " " + value
		}
		if shown := defaultOf(f); shown != "" {
			text += " (default " + shown + ")"
		}
		l.add("%s", name)
		l.add("%s", wrap(text, "          "))
	})
}

// placeholder names the value of a flag.
func placeholder(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "bool":
		return ""
	case "stringToString":
		return "KEY=VALUE,..."
	case "strings", "stringSlice", "stringArray":
		return "VALUE,..."
	case "int", "int32", "int64":
		return "NUMBER"
	case "string", "duration":
		return strings.ToUpper(kind)
	default:
		return kind
	}
}

// defaultOf returns the default of a flag where it says something.
func defaultOf(f *pflag.Flag) string {
	if slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
		return ""
	}
	return f.DefValue
}

// wrap breaks a text into lines that begin with indent.
func wrap(text, indent string) string {
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
			out.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > width:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}
