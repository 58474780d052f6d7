package acceptance

import (
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/orphan"
)

// manifestWorkPoll is how often detaching checks whether ManifestWorks remain.
const manifestWorkPoll = 5 * time.Second

// detach removes the resources of a cluster that is being deleted. A finalizer
// retains the RoleBinding for work until the work agent has cleaned up or is
// declared gone. A cluster that was denied before gets that binding back meanwhile.
func (r *Reconciler) detach(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if !slices.Contains(cluster.Finalizers, names.FinalizerRegistration) {
		return ctrl.Result{}, nil
	}
	works, err := r.removeAccess(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if works > 0 {
		return ctrl.Result{RequeueAfter: manifestWorkPoll}, nil
	}
	if err := r.deleteWorkBinding(ctx, r.Live, cluster.Name); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, clusterpatch.RemoveFinalizer(ctx, r.Client, Owner, cluster, names.FinalizerRegistration)
}

// removeAccess removes all permissions of a cluster that is being deleted except
// those on its ManifestWorks, and counts the ManifestWorks. The bindings record the
// agent, so the one that stays is created before the others are deleted.
func (r *Reconciler) removeAccess(ctx context.Context, cluster *clusterv1.ManagedCluster) (works int, err error) {
	known, err := r.forget(ctx, r.live(), cluster.Name)
	if err != nil {
		return 0, err
	}
	if works, err = r.remainingWorks(ctx, cluster); err != nil {
		return 0, err
	}
	if works > 0 && known.Known() && !orphan.Released(cluster) {
		if err := r.ensureRetiredWorkBinding(ctx, cluster.Name, recorded(cluster.Name, known)); err != nil {
			return 0, err
		}
	}
	return works, r.retireRBAC(ctx, r.Live, cluster.Name)
}

// remainingWorks counts the ManifestWorks that the agent has still to clean up. If
// the agent is gone, it releases them.
func (r *Reconciler) remainingWorks(ctx context.Context, cluster *clusterv1.ManagedCluster) (int, error) {
	hub := orphan.Collector{Client: r.Client, Live: r.Live, Owner: Owner}
	works, err := hub.List(ctx, orphan.ManifestWorks(), cluster.Name)
	if err != nil || len(works) == 0 {
		return 0, err
	}
	// If garbage collection is enabled, it releases and reports them.
	if r.CollectGarbage || !orphan.Released(cluster) {
		return len(works), nil
	}
	resource := orphan.ManifestWorks()
	released, err := hub.Release(ctx, resource, cluster.Name)
	if len(released) > 0 {
		r.Recorder.Warning(cluster, orphan.ReasonForced, orphan.ActionForced(resource), orphan.MessageForced(resource, released))
	}
	return len(works), err
}

// sweep removes the RBAC of a cluster whose ManagedCluster was deleted without its
// finalizers.
func (r *Reconciler) sweep(ctx context.Context, cluster string) error {
	err := validateName(cluster)
	if errors.Is(err, names.ErrClusterName) {
		return nil // Such a cluster is never accepted.
	}
	if _, err := r.forget(ctx, r.live(), cluster); err != nil {
		return err
	}
	if err := r.retireRBAC(ctx, r.Client, cluster); err != nil {
		return err
	}
	return r.deleteWorkBinding(ctx, r.Client, cluster)
}
