package acceptance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/leftover"
)

// Owner is the field manager of everything this controller writes.
const Owner client.FieldOwner = "ocm.acceptance"

// worksPoll is how often detaching looks whether the works are gone.
const worksPoll = 5 * time.Second

// Reconciler accepts, denies and detaches clusters.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server, where a stale answer would leave
	// something behind.
	Live client.Reader
	// Drivers are the enabled registration drivers.
	Drivers []driver.Hub
	// AutoApprove is the feature gate ManagedClusterAutoApproval.
	AutoApprove bool
	// CollectGarbage is the feature gate ResourceCleanup.
	CollectGarbage bool
	// Labels are put on the namespace and the RBAC of every cluster.
	Labels map[string]string
	// Clock tells the time of conditions, leases and annotations.
	Clock clock.PassiveClock
	// Recorder tells users.
	Recorder event.Recorder

	// said is why clusters are left to a person, by their name.
	said sync.Map
}

// verdict is what is to be done about a live cluster.
type verdict int

const (
	// leave: nobody ever accepted this cluster, so it has nothing on the hub.
	leave verdict = iota
	accept
	deny
)

// judge compares what an admin wants with what the hub did. A cluster that was
// not accepted to the end has our finalizer, if it has anything.
func judge(cluster *clusterv1.ManagedCluster) verdict {
	switch {
	case cluster.Spec.HubAcceptsClient:
		return accept
	case slices.Contains(cluster.Finalizers, names.FinalizerRegistration),
		apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted):
		return deny
	}
	return leave
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.said.Delete(req.Name)
		return ctrl.Result{}, r.sweep(ctx, req.Name)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if cluster.DeletionTimestamp != nil {
		return r.detach(ctx, cluster)
	}
	if done, err := r.autoAccept(ctx, cluster); done || err != nil {
		return ctrl.Result{}, err
	}
	switch judge(cluster) {
	case accept:
		return ctrl.Result{}, r.accept(ctx, cluster)
	case deny:
		return ctrl.Result{}, r.deny(ctx, cluster)
	case leave:
	}
	return r.remember(ctx, cluster.Name)
}

// autoAccept accepts a cluster once without a person. The annotation stays, so
// that an admin can deny the cluster later and it sticks. So does a denial from
// before the gate was on.
func (r *Reconciler) autoAccept(ctx context.Context, cluster *clusterv1.ManagedCluster) (done bool, err error) {
	_, decided := cluster.Annotations[names.AnnotationAutoAccepted]
	if decided || !r.AutoApprove || judge(cluster) == deny {
		return false, nil
	}
	byPerson := cluster.Spec.HubAcceptsClient
	for _, d := range r.Drivers {
		admission, err := d.Admits(ctx, cluster)
		if err == nil && !admission.Admitted && !byPerson {
			r.leftToPerson(cluster, admission.Why)
		}
		if err != nil || !admission.Admitted {
			return false, err
		}
	}
	now := r.Clock.Now().UTC().Format(time.RFC3339)
	if err := clusterpatch.Accept(ctx, r.Client, Owner, cluster, names.AnnotationAutoAccepted, now); err != nil {
		return false, err
	}
	if !byPerson {
		r.Recorder.Normal(cluster, "ManagedClusterAutoApproved", "Accept", "Accepted without a person because ManagedClusterAutoApproval is on")
	}
	return true, nil
}

// leftToPerson says once why a cluster is not accepted without a person; a hub
// that starts says it again.
func (r *Reconciler) leftToPerson(cluster *clusterv1.ManagedCluster, why string) {
	if said, _ := r.said.Swap(cluster.Name, why); said != why {
		r.Recorder.Normal(cluster, "ManagedClusterNotAutoApproved", "Accept", "Left for a person to accept: "+why)
	}
}

// accept makes what an accepted cluster has, in the order of the package's
// documentation, and says so at last.
func (r *Reconciler) accept(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := usable(cluster.Name); err != nil {
		_, patchErr := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubError, err.Error())
		return patchErr
	}
	leaseMade, err := r.place(ctx, cluster)
	if err != nil {
		return r.failed(ctx, cluster, err)
	}
	conditions := accepted(metav1.ConditionTrue, names.ReasonHubAccepted, names.MessageHubAccepted)
	if leaseMade {
		conditions = append(conditions, clockSynced())
	}
	_, err = clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), conditions...)
	return err
}

// place makes everything that an accepted cluster has but the condition.
func (r *Reconciler) place(ctx context.Context, cluster *clusterv1.ManagedCluster) (leaseMade bool, err error) {
	if err := r.ensureFinalizers(ctx, cluster); err != nil {
		return false, err
	}
	if err := r.ensureNamespace(ctx, cluster); err != nil {
		return false, err
	}
	who, err := r.holder(ctx, r.Client, cluster)
	if err == nil {
		err = r.bind(ctx, cluster, who)
	}
	if err != nil && !errors.Is(err, errUndecided) {
		return false, err
	}
	// A cluster that left and was accepted again waits for its next agent.
	if err := clusterpatch.DropAnnotation(ctx, r.Client, Owner, cluster, names.AnnotationLeft); err != nil {
		return false, err
	}
	return r.ensureLease(ctx, cluster.Name)
}

// bind gives an accepted cluster's rights to who has them, as the cache knows. What
// that shows of a cluster which had the name before must not come back, so that
// nothing is written before the API server has said the same.
func (r *Reconciler) bind(ctx context.Context, cluster *clusterv1.ManagedCluster, who holder) error {
	bound, err := r.bound(ctx, cluster.Name, who)
	if err != nil {
		return err
	}
	if !bound {
		if who, err = r.holder(ctx, r.Live, cluster); err != nil {
			return err
		}
	}
	return r.ensureRBAC(ctx, cluster.Name, who)
}

// deny takes the access of a cluster away and leaves its agent able to see that.
// What was done before is found out from what is there, never from a condition.
func (r *Reconciler) deny(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := r.restrict(ctx, cluster); err != nil {
		return r.failed(ctx, cluster, err)
	}
	changed, err := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubDenied, names.MessageHubDenied)
	if changed {
		r.Recorder.Normal(cluster, "ManagedClusterDenied", "Deny", "The hub does not accept this cluster any more: its access was removed")
	}
	return err
}

// restrict removes the access of a denied cluster. Of an identity that a driver
// granted nothing stays, because the grant itself is revoked.
func (r *Reconciler) restrict(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if err := usable(cluster.Name); errors.Is(err, names.ErrClusterName) {
		return nil // It was never given any.
	}
	agent, err := r.agent(ctx, r.Live, cluster)
	if err != nil {
		return err
	}
	return r.reduceRBAC(ctx, r.Live, cluster.Name, recorded(cluster.Name, agent))
}

// detach removes what acceptance made for a cluster that is being deleted. The
// RoleBinding for work stays in force, held by its finalizer, until the work
// agent has cleaned up after itself or is declared gone. A cluster that was
// denied before gets that one binding back for as long.
func (r *Reconciler) detach(ctx context.Context, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	if !slices.Contains(cluster.Finalizers, names.FinalizerRegistration) {
		return ctrl.Result{}, nil
	}
	works, err := r.finish(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if works > 0 {
		return ctrl.Result{RequeueAfter: worksPoll}, nil
	}
	if err := r.deleteWorkBinding(ctx, r.Live, cluster.Name); err != nil {
		return ctrl.Result{}, err
	}
	kept := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == names.FinalizerRegistration })
	return ctrl.Result{}, client.IgnoreNotFound(clusterpatch.Finalizers(ctx, r.Client, Owner, cluster, kept))
}

// finish takes all rights of a cluster that is being deleted but those on its
// works, and counts these. The record of its agent goes with the bindings, so
// the one that stays is made before.
func (r *Reconciler) finish(ctx context.Context, cluster *clusterv1.ManagedCluster) (works int, err error) {
	known, err := r.forget(ctx, r.Live, cluster.Name)
	if err != nil {
		return 0, err
	}
	if works, err = r.remainingWorks(ctx, cluster); err != nil {
		return 0, err
	}
	if works > 0 && known.Known() && !leftover.Released(cluster) {
		if err := r.ensureRetiredWorkBinding(ctx, cluster.Name, recorded(cluster.Name, known)); err != nil {
			return 0, err
		}
	}
	return works, r.retireRBAC(ctx, r.Live, cluster.Name)
}

// remainingWorks counts the works that the agent has still to clean up after
// releasing them if there is no agent any more.
func (r *Reconciler) remainingWorks(ctx context.Context, cluster *clusterv1.ManagedCluster) (int, error) {
	hub := leftover.Hub{Client: r.Client, Live: r.Live, Owner: Owner}
	works, err := hub.List(ctx, leftover.ManifestWorks(), cluster.Name)
	if err != nil || len(works) == 0 {
		return 0, err
	}
	// With garbage collection on, releasing is its task, and it tells what it left.
	if r.CollectGarbage || !leftover.Released(cluster) {
		return len(works), nil
	}
	resource := leftover.ManifestWorks()
	released, err := hub.GiveUp(ctx, resource, cluster.Name)
	if len(released) > 0 {
		r.Recorder.Warning(cluster, leftover.ReasonForced, leftover.ActionForced(resource), leftover.MessageForced(resource, released))
	}
	return len(works), err
}

// sweep removes the RBAC of a cluster whose ManagedCluster is gone, because
// somebody took its finalizers away.
func (r *Reconciler) sweep(ctx context.Context, cluster string) error {
	err := usable(cluster)
	if errors.Is(err, names.ErrClusterName) {
		return nil // Nothing was ever made for such a name.
	}
	if _, err := r.forget(ctx, r.Live, cluster); err != nil {
		return err
	}
	if err := r.retireRBAC(ctx, r.Client, cluster); err != nil {
		return err
	}
	return r.deleteWorkBinding(ctx, r.Client, cluster)
}
