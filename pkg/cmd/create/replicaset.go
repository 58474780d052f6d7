package create

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/cli"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/cmd/internal/works"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/delivery"
)

// setResult is the stable schema of what the command did to a ManifestWorkReplicaSet.
type setResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Action    string `json:"action"`
}

func (r setResult) ref() cli.Ref { return works.SetRef(r.Namespace, r.Name) }

// runSet delivers the work with a ManifestWorkReplicaSet.
func (o *workOptions) runSet(ctx context.Context, hub delivery.Hub) error {
	set, action, err := hub.PlanSet(ctx, o.delivery, o.choice.Placement)
	if err != nil {
		return err
	}
	if o.env.Kube.DryRun() == cli.DryRunClient {
		set.ManagedFields = nil
		return fleet.PrintObjects(o.env.Out, o.out, []client.Object{set})
	}
	if err := hub.CarrySet(ctx, o.delivery, set, action); err != nil {
		return err
	}
	if err := o.printSet(setResult{Namespace: set.Namespace, Name: set.Name, Action: string(action)}); err != nil {
		return err
	}
	return o.awaitSet(ctx, hub, set)
}

func (o *workOptions) printSet(r setResult) error {
	if o.out.Format != cli.Text {
		return cli.PrintList(o.env.Out, o.out, cli.Kind[setResult]{Name: "WorkSetResult", Ref: setResult.ref}, []setResult{r}, nil)
	}
	_, err := fmt.Fprintf(o.env.Out, "%s %s%s\n", r.ref().Full(), r.Action, o.env.Kube.DryRunSuffix())
	return err
}

// awaitSet waits, if asked to, for the ManifestWorks of a set.
func (o *workOptions) awaitSet(ctx context.Context, hub delivery.Hub, set *workv1alpha1.ManifestWorkReplicaSet) error {
	if o.stage == "" || o.env.Kube.DryRun() != cli.DryRunNone {
		return nil
	}
	err := o.env.Progress().Step(ctx, "Waiting for the ManifestWorks of "+set.Name, func(ctx context.Context, say cli.Say) error {
		return hub.AwaitSet(ctx, set, o.stage, func(_, message string) { say("%s", message) })
	})
	if err == nil {
		return nil
	}
	try := o.env.Kubectl("describe", "manifestworkreplicaset", "-n", set.Namespace, set.Name)
	return o.wait.TimedOut(err, "ManifestWorkReplicaSet "+set.Name, try)
}
