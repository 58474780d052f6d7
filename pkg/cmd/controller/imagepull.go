//go:build linux

package controller

import (
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/pullsecrets"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/imagepull"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// imagePullFlags are the flags of the image pull secret controller.
type imagePullFlags struct {
	common common
	pull   pullsecrets.Flags
}

func newImagePull() *cobra.Command {
	return newRole(&imagePullFlags{common: newCommon()}, &cobra.Command{
		Use:   "imagepull",
		Short: "Reconcile image pull secrets with bound ServiceAccount tokens",
		Long: `Keep an image pull secret for each selected ServiceAccount, with a token of that
ServiceAccount as the password for the registries. The token is bound to the
Secret, expires, and is renewed before it does.

A ServiceAccount is selected by the annotation
` + names.AnnotationPullSecret + `=true on it or on its
namespace, or by the selectors; the annotation with the value false opts out.`,
		Example: `  # Pull secrets for one registry, for ServiceAccounts that opt in
  kubectl ocm controller imagepull --registry registry.example.com \
      --audience registry.example.com`,
	})
}

func (f *imagePullFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	f.pull.AddTo(cmd)
}

func (f *imagePullFlags) run(cmd *cobra.Command) error {
	config, err := f.pull.Config()
	if err != nil {
		return err
	}
	config.Clock, config.Metrics = clock.RealClock{}, metrics.Registry
	connection, err := f.common.config()
	if err != nil {
		return err
	}
	connection.UserAgent = "kubectl-ocm/imagepull"
	mgr, err := f.common.managerOf(connection, "imagepull", imagepull.CacheOptions(config))
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := imagepull.Setup(ctx, mgr, config); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting to keep image pull secrets", "hosts", config.Hosts, "audience", config.Audience)
	return mgr.Start(ctx)
}
