package replicaset

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
)

// poll is how often works are counted that a set waits for which is being deleted while
// the gate is off: nothing watches works then.
const poll = 5 * time.Second

// disabled is the condition of a set while the gate is off.
const disabled = "the feature gate ManifestWorkReplicaSet of the hub is off, and the ManifestWorks stay as they are: " +
	"enable it in spec.workConfiguration of the ClusterManager, or delete this ManifestWorkReplicaSet, which deletes them"

// remover is the controller that runs while the gate is off.
type remover struct{ *reconciler }

// Reconcile implements reconcile.Reconciler.
func (r *remover) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp.IsZero() {
		before := set.DeepCopy()
		off := &state{problems: []string{disabled}}
		conditions(set, off)
		return mergepatch.Settled(ctrl.Result{}, r.writeStatus(ctx, set, before, off))
	}
	waits, err := r.finalize(ctx, set)
	if err == nil && waits {
		return ctrl.Result{RequeueAfter: poll}, nil
	}
	return mergepatch.Settled(ctrl.Result{}, err)
}
