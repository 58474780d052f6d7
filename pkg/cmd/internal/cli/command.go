package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

// OrderAnnotation holds the place of a command in its section of the help.
const OrderAnnotation = "order"

// SetOrder makes cmd the i-th command of its section.
func SetOrder(cmd *cobra.Command, i int) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[OrderAnnotation] = fmt.Sprintf("%02d", i)
}

// Parent returns a command that only holds others, which help shows in their
// order. An unknown subcommand is a usage error.
func Parent(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " COMMAND",
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for i, child := range children {
		SetOrder(child, i)
	}
	cmd.AddCommand(children...)
	return cmd
}

// Absent returns a command of clusteradm that this program does not have. It is
// not shown in help; with any arguments it is a usage error that says
// what to use instead. Aliases are its other names.
func Absent(name, problem, try string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: name, Aliases: aliases, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &Explained{Problem: cmd.CommandPath() + " is not available: " + problem, Try: try, Code: CodeUsage}
		},
	}
}

const oldNameAnnotation = "old-name"

// OldName lets a command be called by the name that it had before. Help does not show it.
func OldName(cmd *cobra.Command, name string) {
	cmd.Aliases = append(cmd.Aliases, name)
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[oldNameAnnotation] = name
}

// Aliases returns the names of a command that help shows besides its own.
func Aliases(cmd *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(cmd.Aliases), func(name string) bool { return name == cmd.Annotations[oldNameAnnotation] })
}

// LinuxOnly returns a command that other systems than Linux do not have: with
// any arguments it is blocked.
func LinuxOnly(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Blockedf("run it on Linux, for example in a container", "%s runs on Linux only", cmd.CommandPath())
		},
	}
}

// NamespacedName reads NAMESPACE/NAME.
func NamespacedName(text string) (name types.NamespacedName, ok bool) {
	name.Namespace, name.Name, ok = strings.Cut(text, "/")
	return name, ok && name.Namespace != "" && name.Name != "" && !strings.Contains(name.Name, "/")
}

const aliasAnnotation = "flag-alias/"

// AliasFlag makes alias another spelling of the flag called name. Both set the
// same flag, so there is no question which one wins.
func AliasFlag(cmd *cobra.Command, alias, name string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[aliasAnnotation+alias] = name
}

// FlagName is the name under which a command knows a flag that was typed:
// underscores are dashes and aliases are resolved.
func FlagName(cmd *cobra.Command, typed string) string {
	name := strings.ReplaceAll(typed, "_", "-")
	if target, ok := cmd.Annotations[aliasAnnotation+name]; ok {
		return target
	}
	return name
}
