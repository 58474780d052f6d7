package controller

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/operator/clustermanager"
)

// clusterManagerFlags are the flags of the hub's operator (contract D.8).
type clusterManagerFlags struct {
	common         common
	image          string
	replicas       int32
	controlPlane   string
	syncLabels     bool
	skipRemoveCRDs bool
}

func newClusterManager() *cobra.Command {
	var flags clusterManagerFlags
	cmd := &cobra.Command{
		Use:   "clustermanager",
		Short: "Keep the hub running as its ClusterManager says",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.addFlags(cmd.Flags())
	return cmd
}

func (f *clusterManagerFlags) addFlags(flags *pflag.FlagSet) {
	f.common.addFlags(flags)
	flags.StringVar(&f.image, "image", buildinfo.DefaultImage(), "image of the hub's components where the ClusterManager names none")
	flags.Int32Var(&f.replicas, "deployment-replicas", 0, "pods per component; 0 means three where there is more than one control plane node, else one")
	flags.StringVar(&f.controlPlane, "control-plane-node-label-selector", "node-role.kubernetes.io/master=", "how the control plane nodes are labelled")
	flags.BoolVar(&f.syncLabels, "enable-sync-labels", false, "copy the ClusterManager's labels onto what is installed")
	flags.BoolVar(&f.skipRemoveCRDs, "skip-remove-crds", false, "leave the CRDs, and with them all clusters, when the ClusterManager is deleted")
}

// config turns flags into values, without the network.
func (f *clusterManagerFlags) config() (clustermanager.Config, error) {
	if f.image == "" {
		return clustermanager.Config{}, errors.New("--image: name the image of the hub's components")
	}
	if f.replicas < 0 {
		return clustermanager.Config{}, errors.New("--deployment-replicas: use 0 or more")
	}
	selector, err := labels.Parse(f.controlPlane)
	if err != nil {
		return clustermanager.Config{}, fmt.Errorf("--control-plane-node-label-selector: %w", err)
	}
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = names.OperatorNamespace
	}
	return clustermanager.Config{
		Namespace:      namespace,
		Image:          f.image,
		Version:        buildinfo.Version,
		SyncLabels:     f.syncLabels,
		SkipRemoveCRDs: f.skipRemoveCRDs,
		Replicas:       f.replicas,
		ControlPlane:   selector,
		Clock:          clock.RealClock{},
	}, nil
}

func (f *clusterManagerFlags) run(cmd *cobra.Command) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	connection, err := f.common.config()
	if err != nil {
		return err
	}
	objects, err := clustermanager.CacheOptions()
	if err != nil {
		return err
	}
	mgr, err := f.common.manager(connection, "cluster-manager", objects)
	if err != nil {
		return err
	}
	if err := clustermanager.Setup(mgr, config); err != nil {
		return err
	}
	ctx := cmd.Context()
	klog.FromContext(ctx).Info("Starting cluster manager operator", "image", config.Image)
	return mgr.Start(ctx)
}
