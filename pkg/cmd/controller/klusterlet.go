package controller

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
)

// klusterletFlags are the flags of the operator on a managed cluster.
type klusterletFlags struct {
	operator           operatorFlags
	skipAddOnNamespace bool
}

func newKlusterlet() *cobra.Command {
	var flags klusterletFlags
	cmd := &cobra.Command{
		Use:   "klusterlet",
		Short: "Run the operator that deploys the agents of a Klusterlet",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.operator.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&flags.skipAddOnNamespace, "disable-default-addon-namespace", false, "do not make the default namespace of add-ons")
	return cmd
}

func (f *klusterletFlags) run(cmd *cobra.Command) error {
	mgr, selector, err := f.operator.manager("klusterlet-operator", klusterlet.CacheOptions)
	if err != nil {
		return err
	}
	err = klusterlet.Setup(mgr, klusterlet.Config{
		Namespace:          operatorNamespace(),
		Image:              f.operator.image,
		Version:            buildinfo.Version,
		SyncLabels:         f.operator.syncLabels,
		SkipAddOnNamespace: f.skipAddOnNamespace,
		Replicas:           f.operator.replicas,
		ControlPlane:       selector,
		Clock:              clock.RealClock{},
	})
	if err != nil {
		return err
	}
	return mgr.Start(cmd.Context())
}
