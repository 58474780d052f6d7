package addonauth

import (
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/addons"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	cmd := cli.Parent("addon-auth", "Manage how add-ons authenticate to the hub",
		newStatus(env), newSet(env), newRotate(env), newRBAC(env), newGC(env))
	cmd.Aliases = []string{"addonauth"}
	return cmd
}

// selection is the pair of flags that choose add-ons.
type selection struct {
	clusters []string
	addOns   []string
}

func (s *selection) addTo(env cli.Env, cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&s.clusters, "cluster", "c", nil, "only these clusters, separated by commas")
	cli.AliasFlag(cmd, "clusters", "cluster")
	cmd.Flags().StringSliceVar(&s.addOns, "addon", nil, "only these add-ons, separated by commas")
	cli.AliasFlag(cmd, "addons", "addon")
	_ = cmd.RegisterFlagCompletionFunc("cluster", fleet.CompleteClusters(env))
	_ = cmd.RegisterFlagCompletionFunc("addon", addons.CompleteNames(env))
}

// filter checks the names and returns what they choose.
func (s *selection) filter() (inventory.Filter, error) {
	f := inventory.Filter{Clusters: s.clusters, Names: s.addOns}
	for _, name := range f.Clusters {
		if err := names.ValidateClusterName(name); err != nil {
			return f, cli.Usagef("--cluster: %v", err)
		}
	}
	for _, name := range f.Names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return f, cli.Usagef("--addon: invalid add-on name %q: %s", name, problems[0])
		}
	}
	slices.Sort(f.Clusters)
	slices.Sort(f.Names)
	f.Clusters, f.Names = slices.Compact(f.Clusters), slices.Compact(f.Names)
	return f, nil
}
