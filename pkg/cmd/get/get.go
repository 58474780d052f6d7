// Package get is the "get" command: it prints what there is, on stdout and in
// stable formats, and changes nothing but for "get token", which makes a token.
package get

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("get", "Show clusters, add-ons, ManifestWorks, tokens and installations",
		newClusters(env),
		newAddOns(env),
		newWorks(env),
		newToken(env),
		newHubInfo(env),
		newKlusterletInfo(env),
		cli.Absent("clustersets", "cluster sets are not in this release", env.Command("get", "clusters", "-l", "KEY=VALUE"), "clusterset"),
		cli.Absent("placements", "placements are not shown by this release", "kubectl get placements -A", "placement"),
	)
}
