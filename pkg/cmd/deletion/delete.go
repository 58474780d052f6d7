package deletion

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
)

// New returns the command.
func New(env cli.Env) *cobra.Command {
	return cli.Parent("delete", "Delete workloads from managed clusters",
		newWork(env),
		cli.Absent("cluster", "clusters are detached", env.Command("unjoin", "CLUSTER", "--side=hub"), "clusters"),
		cli.Absent("clusterset", "cluster sets are not in this release", "kubectl delete managedclusterset NAME", "clustersets"),
		cli.Absent("token", "tokens are revoked", env.Command("token", "revoke", "ID"), "tokens"),
	)
}
