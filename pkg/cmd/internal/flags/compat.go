package flags

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// NoGRPC says why registration over gRPC is refused.
const NoGRPC = "registration over gRPC is not in this release; clusters register with csr or awsirsa"

// NoHosted says why agents outside of their cluster are refused.
const NoHosted = "hosted mode is not in this release; run join with a context of the managed cluster"

// AddCompat registers flags of clusteradm or OCM that mean nothing here, each with
// the sentence that is said when it is set. They are hidden. An ignored one is taken
// with a warning, so that old scripts run; a refused one would change the outcome and
// is a usage error that says what to use instead.
func AddCompat(cmd *cobra.Command, ignored, refused map[string]string) {
	for _, flags := range []map[string]string{ignored, refused} {
		for name := range flags {
			cmd.Flags().AddFlag(silent(name))
		}
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range slices.Sorted(maps.Keys(refused)) {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("--%s is not supported: %s", name, refused[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ignored)) {
			if cmd.Flags().Changed(name) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "Warning: --%s has no effect: %s\n", name, ignored[name])
			}
		}
		return nil
	}
}

func silent(name string) *pflag.Flag {
	flag := &pflag.Flag{Name: name, Usage: "not used", Value: &anything{}, Hidden: true}
	if slices.Contains([]string{"singleton", "capi-import", "force-internal-endpoint-lookup-managed"}, name) {
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
