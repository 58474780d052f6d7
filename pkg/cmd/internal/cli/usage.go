package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What is wrong with a command line is found by cobra, pflag and strconv, each in words of
// its own. Users read ours.

// FlagError is the usage error about a flag that cannot be read, with the flag that may
// have been meant.
func FlagError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, missing)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return Usagef("--%s needs a value", missing.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return Usagef("--%s: %q %s", flag.Name, invalid.GetValue(), wanted(flag.Value.Type(), invalid.Unwrap()))
	}
	if syntax, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return Usagef("%q is not a flag", syntax.GetSpecifiedFlag())
	}
	return err
}

// wanted says what the value of a type must be: in the words of the type where it has some.
func wanted(kind string, err error) string {
	switch {
	case kind == "bool":
		return "is neither true nor false"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), kind == "count":
		return "is not a whole number"
	case strings.HasPrefix(kind, "float"):
		return "is not a number"
	}
	return err.Error()
}

func unknownFlag(cmd *cobra.Command, missing *pflag.NotExistError) error {
	if shorthands := missing.GetSpecifiedShortnames(); shorthands != "" {
		return Usagef("unknown flag: -%s", missing.GetSpecifiedName())
	}
	var known []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			known = append(known, "--"+flag.Name)
		}
	})
	return unknown(Usagef("unknown flag: --%s", missing.GetSpecifiedName()), "--"+missing.GetSpecifiedName(), known)
}

// Args has a command say in our words what is wrong with its arguments and with flags that
// do not go together.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return argsError(cmd, args, check, err)
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return groupError(err)
		}
		if err := cmd.ValidateFlagGroups(); err != nil {
			return groupError(err)
		}
		return nil
	}
}

// argsError says which argument is too many, or that one is missing.
func argsError(cmd *cobra.Command, args []string, check cobra.PositionalArgs, err error) error {
	if errors.As(err, new(*Explained)) {
		return err
	}
	for n, arg := range slices.Backward(args) {
		if check(cmd, args[:n]) == nil {
			return Usagef("unexpected argument %q: the command is %s", arg, cmd.UseLine())
		}
	}
	return Usagef("an argument is missing: the command is %s", cmd.UseLine())
}

// groupError says which flags are missing, or exclude each other.
func groupError(err error) error {
	for form, say := range map[string]string{
		`^required flag\(s\) (.*) not set$`:                                              "missing: %s",
		`^at least one of the flags in the group \[(.*)\] is required$`:                  "one of these is missing: %s",
		`^if any flags in the group .* are set none of the others can be; \[(.*)\] were`: "these exclude each other: %s",
		`^if any flags in the group .* are set they must all be set; missing \[(.*)\]$`:  "missing with the other flags: %s",
	} {
		found := regexp.MustCompile(form).FindStringSubmatch(err.Error())
		if found == nil {
			continue
		}
		var flags []string
		for _, name := range strings.FieldsFunc(found[1], func(r rune) bool { return strings.ContainsRune(`", `, r) }) {
			flags = append(flags, "--"+name)
		}
		return Usagef(say, strings.Join(flags, ", "))
	}
	return err
}

// sortBy is the value of --sort-by.
type sortBy string

var _ pflag.Value = (*sortBy)(nil)

// String implements pflag.Value.
func (s *sortBy) String() string { return string(*s) }

// Type implements pflag.Value.
func (s *sortBy) Type() string { return "string" }

// Set implements pflag.Value.
func (s *sortBy) Set(text string) error {
	if _, err := fieldPath(text); err != nil {
		return fmt.Errorf("is not a JSONPath: %w", err)
	}
	*s = sortBy(text)
	return nil
}
