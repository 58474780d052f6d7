//go:build linux

package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/buildinfo"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/origin"
)

// operatorFlags are the flags that both operators have.
type operatorFlags struct {
	common       common
	image        string
	syncLabels   bool
	replicas     int32
	controlPlane string
}

func (f *operatorFlags) addFlags(cmd *cobra.Command) {
	f.common.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.image, "image", buildinfo.DefaultImage(), "image of the components whose resource names none")
	flags.BoolVar(&f.syncLabels, "enable-sync-labels", false, "copy the labels of the operator's resource onto what it applies")
	flags.Int32Var(&f.replicas, "deployment-replicas", 0, "pods of each component; 0 means three where there is more than one control plane node, else one")
	flags.StringVar(&f.controlPlane, "control-plane-node-label-selector", "node-role.kubernetes.io/master=", "selector of the control plane nodes")
}

// refuseOthers returns an error where others finds that another product runs
// what this operator would run. It is to look in our own namespaces only: an administrator who
// may create a Deployment in another one must not be able to stop the operator.
// While the API server does not answer, it waits.
func refuseOthers(ctx context.Context, others func(context.Context) (*origin.Installation, error)) error {
	return wait.PollUntilContextCancel(ctx, othersInterval, true, func(ctx context.Context) (bool, error) {
		found, err := others(ctx)
		switch {
		case err != nil:
			klog.FromContext(ctx).Error(err, "Cannot determine yet whether another product runs here")
			return false, nil
		case found != nil && found.Writes():
			return false, cli.Blockedf(found.Try(), "the operator does not start, because this cluster has %s", found)
		}
		return true, nil
	})
}

// othersInterval is how often an API server that does not answer is asked.
const othersInterval = 2 * time.Second

// manager returns the manager of the operator called name, whose cache holds
// objects, and the selector of control plane nodes.
func (f *operatorFlags) manager(name string, objects func() (cache.Options, error)) (manager.Manager, labels.Selector, error) {
	selector, err := labels.Parse(f.controlPlane)
	if err != nil {
		return nil, nil, fmt.Errorf("--control-plane-node-label-selector: %w", err)
	}
	options, err := objects()
	if err != nil {
		return nil, nil, err
	}
	mgr, err := f.common.manager(name, options)
	return mgr, selector, err
}

// operatorNamespace is the namespace that the operator runs in.
func operatorNamespace() string { return cmp.Or(os.Getenv("POD_NAMESPACE"), names.OperatorNamespace) }
