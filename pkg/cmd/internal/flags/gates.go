package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// Gates is the flag --feature-gates.
type Gates struct {
	known  []string
	values []string
}

// NewGates returns the flag for a list of known gates.
func NewGates(known []string) *Gates { return &Gates{known: known} }

// AddTo registers the flag.
func (g *Gates) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&g.values, "feature-gates", nil, "features to switch, as Name=true,Other=false")
	_ = cmd.RegisterFlagCompletionFunc("feature-gates", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		for _, name := range g.known {
			out = append(out, name+"=true", name+"=false")
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// Value returns the gates. Off is written as well as on, so that a gate that is
// on by default can be switched off.
func (g *Gates) Value() ([]operatorv1.FeatureGate, error) {
	var (
		out  []operatorv1.FeatureGate
		errs []error
	)
	for _, text := range g.values {
		name, value, _ := strings.Cut(text, "=")
		on, err := strconv.ParseBool(value)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--feature-gates: %q is not Name=true or Name=false", text))
		case !slices.Contains(g.known, name):
			errs = append(errs, fmt.Errorf("--feature-gates: %q is unknown; known are %s", name, strings.Join(g.known, ", ")))
		case on:
			out = append(out, operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeEnable})
		default:
			out = append(out, operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeDisable})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return out, nil
}

// Enabled reports whether the flag switches a gate on.
func (g *Gates) Enabled(name string) bool {
	return slices.Contains(g.values, name+"=true")
}
