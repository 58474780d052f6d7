package deletion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/report"
)

// runSet deletes a ManifestWorkReplicaSet with its ManifestWorks.
func (o *workOptions) runSet(ctx context.Context, hub delivery.Hub) error {
	placement, ok := cli.NamespacedName(o.placement)
	if !ok {
		return cli.Usagef("--placement: %q is not NAMESPACE/NAME", o.placement)
	}
	set, copies, err := hub.FindSet(ctx, o.name, placement)
	if apierrors.IsNotFound(err) {
		return cli.NotFoundf("list them with: "+o.env.Kubectl("get manifestworkreplicasets -A"),
			"no ManifestWorkReplicaSet %s in namespace %s", o.name, placement.Namespace)
	}
	if err != nil {
		return err
	}
	if err := o.confirmSet(set, copies); err != nil {
		return err
	}
	if o.env.Kube.DryRun() != cli.DryRunClient {
		if err := hub.DeleteSet(ctx, set); err != nil {
			return err
		}
	}
	if o.wait.Enabled && o.env.Kube.DryRun() == cli.DryRunNone {
		if err := o.awaitSet(ctx, hub, set, copies); err != nil {
			return err
		}
	}
	return o.changes.Add(works.SetRef(set.Namespace, set.Name), "deleted")
}

// confirmSet says what is lost.
func (o *workOptions) confirmSet(set *workv1alpha1.ManifestWorkReplicaSet, copies []workv1.ManifestWork) error {
	manifests := len(set.Spec.ManifestWorkTemplate.Workload.Manifests)
	return o.env.Confirm(o.yes, fmt.Sprintf("Delete ManifestWorkReplicaSet %s/%s and its %s? The agents delete the %s of each.",
		set.Namespace, set.Name, report.Sum(len(copies), "ManifestWork"), report.Sum(manifests, "resource")))
}

func (o *workOptions) awaitSet(ctx context.Context, hub delivery.Hub, set *workv1alpha1.ManifestWorkReplicaSet, copies []workv1.ManifestWork) error {
	err := o.env.Progress().Step(ctx, "Waiting for the ManifestWorks of "+set.Name+" to be gone", func(ctx context.Context, say cli.Say) error {
		return hub.AwaitSetGone(ctx, set, copies, func(namespace, message string) { say("%s: %s", namespace, message) })
	})
	if err == nil {
		return nil
	}
	try := o.env.Command("get works", set.Name, "-o wide")
	return o.wait.TimedOut(err, "ManifestWorkReplicaSet "+set.Name+" to be gone ("+delivery.Unmet(err)+")", try)
}
