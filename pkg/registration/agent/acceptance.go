package agent

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// acceptance watches whether the hub accepts the cluster, reports the agent's phase
// accordingly, and updates the client configurations.
type acceptance struct {
	agent *Agent
	hub   client.Client
	end   context.CancelCauseFunc
	// unsynced is true while the hub reports the clock out of sync.
	unsynced bool
	// detaching is the ManagedCluster that was seen while it was being deleted, nil for
	// none: it may be gone, and another one there, before the reconciler reads it.
	detaching atomic.Pointer[types.UID]
}

func (r *acceptance) setup(mgr ctrl.Manager, own reconcile.Request) error {
	// A ManagedCluster that is gone has no event, so the first reconciliation is
	// requested here.
	start := newWakeup()
	start.signal()
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.acceptance").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.observe))).
		WatchesRawSource(start.source(own)).
		Complete(r)
}

// observe passes every event, and records the deletion of the ManagedCluster.
func (r *acceptance) observe(cluster client.Object) bool {
	if !cluster.GetDeletionTimestamp().IsZero() {
		r.detaching.Store(new(cluster.GetUID()))
	}
	return true
}

// Reconcile implements reconcile.Reconciler.
func (r *acceptance) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster clusterv1.ManagedCluster
	err := r.hub.Get(ctx, req.NamespacedName, &cluster)
	detaching := r.detaching.Load()
	if client.IgnoreNotFound(err) == nil && detaching != nil {
		if err := r.noteDetached(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	// The permissions of this agent go with the ManagedCluster that it registered.
	replaced := err == nil && detaching != nil && *detaching != cluster.UID
	if apierrors.IsNotFound(err) || replaced {
		r.end(errVanished)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.agent.eventLog.report(acceptanceReport(&cluster))
	r.reportClock(&cluster)
	if !cluster.DeletionTimestamp.IsZero() || !accepted(&cluster) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.agent.mergeClientConfigs(ctx, r.hub, &cluster)
}

// noteDetached stores that the hub detaches the cluster on purpose.
func (r *acceptance) noteDetached(ctx context.Context) error {
	bootstrap, err := r.agent.store.bootstrap(ctx)
	if err != nil {
		return nil //nolint:nilerr // without a bootstrap kubeconfig the cluster cannot come back
	}
	return r.agent.store.noteDetached(ctx, *bootstrap)
}

// reportClock reports that the hub considers this cluster's clock out of sync. The
// agent writes no status to the hub meanwhile.
func (r *acceptance) reportClock(cluster *clusterv1.ManagedCluster) {
	unsynced := apimeta.IsStatusConditionFalse(cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced)
	switch {
	case unsynced:
		r.agent.eventLog.setTrouble(Condition{names.ReasonHubKubeConfigError, "the clocks of " + cluster.Name + " and of the hub are out of sync, so the agent reports no status; synchronize the clocks"})
	case r.unsynced:
		r.agent.eventLog.setTrouble(Condition{})
	}
	r.unsynced = unsynced
}

func accepted(cluster *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}

// acceptanceReport returns the report of a cluster with a credential.
func acceptanceReport(cluster *clusterv1.ManagedCluster) Report {
	report := Report{Phase: Registered, Bootstrap: functional()}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	unauthorized := func(message string) Condition { return Condition{names.ReasonHubKubeConfigUnauthorized, message} }
	switch {
	case accepted(cluster):
		report.Phase = Running
	case condition == nil && !cluster.Spec.HubAcceptsClient:
		report.Hub = unauthorized(waitingForAcceptance(cluster.Name))
	case cluster.Spec.HubAcceptsClient:
		report.Hub = unauthorized(cluster.Name + " is accepted; waiting for the hub to create its namespace and permissions")
		if condition != nil && condition.Reason == names.ReasonHubError {
			report.Hub.Message += ": " + condition.Message
		}
	default:
		report.Phase = Rejected
		report.Hub = unauthorized(fmt.Sprintf("the hub denies %s: %s; to accept it again, run on the hub: kubectl ocm accept --clusters %s", cluster.Name, condition.Message, cluster.Name))
	}
	return report
}
