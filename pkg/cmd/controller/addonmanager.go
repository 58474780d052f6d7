//go:build linux

package controller

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"open-cluster-management.io/api/feature"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addon"
)

// addOnManagerFlags are the flags of the hub's add-on manager.
type addOnManagerFlags struct {
	common common
	gates  []string
}

func newAddOnManager() *cobra.Command {
	return newRole(&addOnManagerFlags{common: newCommon()}, &cobra.Command{
		Use:   "addon-manager",
		Short: "Install and configure add-ons, and make their identities",
	})
}

func (f *addOnManagerFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	cmd.Flags().StringSliceVar(&f.gates, "feature-gates", nil, "Name=true or Name=false of: "+joined(feature.DefaultHubAddonManagerFeatureGates))
}

func (f *addOnManagerFlags) run(cmd *cobra.Command) error {
	gates, err := parseGates(feature.DefaultHubAddonManagerFeatureGates, f.gates)
	if err != nil {
		return err
	}
	if !gates[feature.AddonManagement] {
		return fmt.Errorf("the feature gate %s is off, and without it this role has nothing to do: remove its Deployment", feature.AddonManagement)
	}
	mgr, err := f.common.manager("addon-manager", addon.CacheOptions())
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := addon.Setup(ctx, mgr, addon.Config{Clock: clock.RealClock{}, Metrics: metrics.Registry, Namespace: f.common.namespace()}); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting the add-on manager")
	return mgr.Start(ctx)
}
