package flags

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// Compat holds flags of clusteradm that mean nothing here. They are hidden. A
// harmless one is taken with a warning, so that old scripts run; one that would
// change the outcome is an error that says what to use instead.
type Compat struct {
	env     cli.Env
	ignored map[string]string
	refused map[string]string
}

// AddCompat registers the flags, each with the sentence that is said when it is set.
func AddCompat(env cli.Env, cmd *cobra.Command, ignored, refused map[string]string) *Compat {
	for _, name := range slices.Sorted(maps.Keys(ignored)) {
		cmd.Flags().AddFlag(silent(name))
	}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		cmd.Flags().AddFlag(silent(name))
	}
	return &Compat{env: env, ignored: ignored, refused: refused}
}

// Check warns about the ignored flags that are set, and is a usage error when a
// refused one is.
func (c *Compat) Check(cmd *cobra.Command) error {
	for _, name := range slices.Sorted(maps.Keys(c.refused)) {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is not supported: %s", name, c.refused[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.ignored)) {
		if cmd.Flags().Changed(name) {
			c.env.Warn("--%s has no effect: %s", name, c.ignored[name])
		}
	}
	return nil
}

func silent(name string) *pflag.Flag {
	flag := &pflag.Flag{Name: name, Usage: "not used", Value: &anything{}, Hidden: true}
	if name == "singleton" || name == "capi-import" {
		flag.NoOptDefVal = "true"
	}
	return flag
}

// anything is a flag value that takes every text.
type anything struct{ text string }

// String implements pflag.Value.
func (a *anything) String() string { return a.text }

// Type implements pflag.Value.
func (a *anything) Type() string { return "string" }

// Set implements pflag.Value.
func (a *anything) Set(s string) error {
	a.text = s
	return nil
}
