package create

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	const fromManifests = "placements and the like are created from manifests"
	return cli.Parent("create", "Create workloads on managed clusters",
		newWork(env),
		cli.Absent("clusterset", "cluster sets are not in this release", env.Command("get", "clusters", "-l", "KEY=VALUE"), "clustersets"),
		cli.Absent("placement", fromManifests, "kubectl apply a Placement", "placements"),
		cli.Absent("sampleapp", "this release has no sample application", env.Command("create", "work", "--help"), "sampleapps"),
	)
}
