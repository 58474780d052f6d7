package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Enum is a flag value that is one of a fixed list.
type Enum[T ~string] struct {
	target  *T
	valid   []T
	aliases map[string]T
	// absent says of choices of clusteradm why they are none here.
	absent map[string]string
}

var _ pflag.Value = (*Enum[string])(nil)

// NewEnum returns a flag value that writes to target. Its present content is
// the default. Aliases are other spellings that are taken as well, but neither
// shown nor completed.
func NewEnum[T ~string](target *T, aliases map[string]T, valid ...T) *Enum[T] {
	return &Enum[T]{target: target, valid: valid, aliases: aliases}
}

// Without refuses a choice that clusteradm has, for a reason.
func (e *Enum[T]) Without(choice, why string) *Enum[T] {
	e.absent = map[string]string{choice: why}
	return e
}

// String implements pflag.Value.
func (e *Enum[T]) String() string {
	if e.target == nil {
		return ""
	}
	return string(*e.target)
}

// Type implements pflag.Value.
func (e *Enum[T]) Type() string { return "string" }

// Set implements pflag.Value.
func (e *Enum[T]) Set(s string) error {
	v, err := e.parse(s)
	if err == nil {
		*e.target = v
	}
	return err
}

func (e *Enum[T]) parse(s string) (T, error) {
	if v, ok := e.aliases[s]; ok {
		return v, nil
	}
	if slices.Contains(e.valid, T(s)) {
		return T(s), nil
	}
	if why, ok := e.absent[s]; ok {
		return "", errors.New(why)
	}
	return "", fmt.Errorf("must be one of %s", strings.Join(e.choices(), ", "))
}

func (e *Enum[T]) choices() []string {
	out := make([]string, len(e.valid))
	for i, v := range e.valid {
		out[i] = string(v)
	}
	return out
}

// AddTo registers the flag and its completion on a command.
func (e *Enum[T]) AddTo(cmd *cobra.Command, name, shorthand, usage string) *pflag.Flag {
	return addValue(cmd, e, e.choices(), name, shorthand, usage+oneOf(e.choices()))
}

// EnumSlice is a flag value that is a comma separated list of choices; the flag
// may be repeated.
type EnumSlice[T ~string] struct {
	target *[]T
	enum   Enum[T]
}

var _ pflag.Value = (*EnumSlice[string])(nil)

// NewEnumSlice is NewEnum for a list. The first use of the flag replaces nothing:
// the list starts empty.
func NewEnumSlice[T ~string](target *[]T, aliases map[string]T, valid ...T) *EnumSlice[T] {
	return &EnumSlice[T]{target: target, enum: Enum[T]{valid: valid, aliases: aliases}}
}

// Without is that of Enum.
func (e *EnumSlice[T]) Without(choice, why string) *EnumSlice[T] {
	e.enum.Without(choice, why)
	return e
}

// String implements pflag.Value.
func (e *EnumSlice[T]) String() string {
	if e.target == nil {
		return ""
	}
	out := make([]string, len(*e.target))
	for i, v := range *e.target {
		out[i] = string(v)
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (e *EnumSlice[T]) Type() string { return "strings" }

// Set implements pflag.Value.
func (e *EnumSlice[T]) Set(s string) error {
	for item := range strings.SplitSeq(s, ",") {
		v, err := e.enum.parse(strings.TrimSpace(item))
		if err != nil {
			return fmt.Errorf("%q: %w", item, err)
		}
		if !slices.Contains(*e.target, v) {
			*e.target = append(*e.target, v)
		}
	}
	return nil
}

// AddTo registers the flag and its completion on a command.
func (e *EnumSlice[T]) AddTo(cmd *cobra.Command, name, shorthand, usage string) *pflag.Flag {
	return addValue(cmd, e, e.enum.choices(), name, shorthand, usage+oneOf(e.enum.choices()))
}

// oneOf ends the usage text of a flag with its choices.
func oneOf(choices []string) string { return ". One of: " + strings.Join(choices, ", ") }

func addValue(cmd *cobra.Command, value pflag.Value, choices []string, name, shorthand, usage string) *pflag.Flag {
	flag := cmd.Flags().VarPF(value, name, shorthand, usage)
	// The only error is a flag that was not registered a line above.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	return flag
}
