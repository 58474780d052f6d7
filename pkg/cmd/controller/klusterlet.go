//go:build linux

package controller

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/install/lookup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/drivers"
)

// klusterletFlags are the flags of the operator on a managed cluster.
type klusterletFlags struct {
	operator           operatorFlags
	skipAddOnNamespace bool
}

func newKlusterlet() *cobra.Command {
	return newRole(&klusterletFlags{operator: operatorFlags{common: newCommon()}}, &cobra.Command{
		Use:   "klusterlet",
		Short: "Run the operator that deploys the agents of a Klusterlet",
	})
}

func (f *klusterletFlags) addFlags(cmd *cobra.Command) {
	f.operator.addFlags(cmd)
	cmd.Flags().BoolVar(&f.skipAddOnNamespace, "disable-default-addon-namespace", false, "do not make the default namespace of add-ons")
}

func (f *klusterletFlags) run(cmd *cobra.Command) error {
	mgr, selector, err := f.operator.manager("klusterlet-operator", klusterlet.CacheOptions)
	if err != nil {
		return err
	}
	err = refuseOthers(cmd.Context(), func(ctx context.Context) (*origin.Installation, error) {
		return othersAgent(ctx, mgr.GetAPIReader())
	})
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
		Drivers:            drivers.All(),
		Clock:              clock.RealClock{},
	})
	if err != nil {
		return err
	}
	return mgr.Start(cmd.Context())
}

// othersAgent looks in the namespaces of the operators and of all agents.
func othersAgent(ctx context.Context, reader client.Reader) (*origin.Installation, error) {
	var list operatorv1.KlusterletList
	if err := reader.List(ctx, &list); err != nil && !lookup.Gone(err) {
		return nil, err
	}
	namespaces := []string{names.OperatorNamespace, names.AgentNamespace}
	for i := range list.Items {
		if namespace := list.Items[i].Spec.Namespace; namespace != "" {
			namespaces = append(namespaces, namespace)
		}
	}
	return origin.Agent(ctx, reader, namespaces...)
}
