package controller

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/conversion"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/webhook/servingcert"
)

// clusterManagerFlags are the flags of the hub's operator (contract D.8).
type clusterManagerFlags struct {
	operator       operatorFlags
	skipRemoveCRDs bool
}

func newClusterManager() *cobra.Command {
	var flags clusterManagerFlags
	cmd := &cobra.Command{
		Use:   "clustermanager",
		Short: "Run the operator that keeps the hub as its ClusterManager says",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.operator.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&flags.skipRemoveCRDs, "skip-remove-crds", false, "leave the CRDs, and with them all clusters, when the ClusterManager is deleted")
	return cmd
}

func (f *clusterManagerFlags) run(cmd *cobra.Command) error {
	mgr, selector, err := f.operator.manager("cluster-manager", clustermanager.CacheOptions)
	if err != nil {
		return err
	}
	err = clustermanager.Setup(mgr, clustermanager.Config{
		Namespace:      operatorNamespace(),
		Image:          f.operator.image,
		Version:        buildinfo.Version,
		SyncLabels:     f.operator.syncLabels,
		SkipRemoveCRDs: f.skipRemoveCRDs,
		Replicas:       f.operator.replicas,
		ControlPlane:   selector,
		Clock:          clock.RealClock{},
	})
	if err != nil {
		return err
	}
	if err := servingcert.Setup(mgr, issuerConfig()); err != nil {
		return err
	}
	return mgr.Start(cmd.Context())
}

// issuerConfig is how the operator issues what the hub's webhook serves with.
func issuerConfig() servingcert.Config {
	return servingcert.Config{
		Namespace: names.HubNamespace,
		Rules:     servingcert.DefaultRules(names.AddOnWebhookService, names.HubNamespace),
		CRDs:      conversion.CRDs(),
		Clock:     clock.RealClock{},
	}
}
