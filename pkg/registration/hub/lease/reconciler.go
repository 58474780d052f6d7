package lease

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/grace"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.lease"

// Reconciler evaluates leases.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock is the hub's.
	Clock clock.PassiveClock
	// Recorder records events.
	Recorder event.Recorder

	heartbeats heartbeats
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		r.heartbeats.forget(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) == nil {
		return ctrl.Result{}, nil // The cluster has no lease yet.
	}
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: names.ManagedClusterLease}, lease)
	switch {
	case apierrors.IsNotFound(err) && cluster.DeletionTimestamp != nil:
		return ctrl.Result{}, r.write(ctx, cluster, unknown())
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil // Its creation by package acceptance triggers a reconciliation.
	case err != nil:
		return ctrl.Result{}, err
	}
	return r.evaluate(ctx, cluster, lease)
}

func (r *Reconciler) evaluate(ctx context.Context, cluster *clusterv1.ManagedCluster, lease *coordinationv1.Lease) (ctrl.Result, error) {
	now, period := r.Clock.Now(), grace.Of(cluster)
	heartbeat := heartbeatOf(cluster, lease)
	since, before, known := r.heartbeats.observe(cluster.Name, heartbeat, now)
	var want []metav1.Condition
	if !known || !heartbeat.renewed.Equal(before.renewed) {
		want = append(want, clockConditions(cluster, heartbeat.renewed, now, known)...)
	}
	remaining, missed := since.Add(period).Sub(now), since.Add(grace.Overdue(cluster)).Sub(now)
	switch {
	case missed <= 0:
		want = append(want, overdue(cluster, heartbeat.renewed))
	case known && !heartbeat.renewed.Equal(before.renewed) && isTrue(cluster, names.ConditionLeaseOverdue):
		want = append(want, renewed())
	}
	if remaining <= 0 {
		want = append(want, unknown())
	}
	if err := r.write(ctx, cluster, want...); err != nil {
		return ctrl.Result{}, err
	}
	if missed <= 0 {
		r.heartbeats.steady(cluster.Name, 0) // The next renewal ends LeaseOverdue.
		return ctrl.Result{RequeueAfter: max(remaining, 0)}, nil
	}
	if isTrue(cluster, clusterv1.ManagedClusterConditionClockSynced) && !isTrue(cluster, names.ConditionLeaseOverdue) {
		r.heartbeats.steady(cluster.Name, period)
	}
	return ctrl.Result{RequeueAfter: missed}, nil
}

func isTrue(cluster *clusterv1.ManagedCluster, kind string) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, kind)
}

// write sets the conditions whose status differs. A different message alone is not
// written.
func (r *Reconciler) write(ctx context.Context, cluster *clusterv1.ManagedCluster, want ...metav1.Condition) error {
	changed := slices.DeleteFunc(want, func(c metav1.Condition) bool {
		return apimeta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, c.Type, c.Status)
	})
	if len(changed) == 0 {
		return nil
	}
	if _, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), changed...); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, condition := range changed {
		switch {
		case condition.Status == metav1.ConditionUnknown:
			r.Recorder.Warning(cluster, "AvailableUnknown", "CheckLease", condition.Message)
		case condition.Reason == names.ReasonClockOutOfSync, condition.Reason == names.ReasonLeaseNotRenewed:
			r.Recorder.Warning(cluster, condition.Reason, "CheckLease", condition.Message)
		}
	}
	return nil
}

// overdue is the condition of a cluster whose agent missed a renewal of its lease.
func overdue(cluster *clusterv1.ManagedCluster, last time.Time) metav1.Condition {
	when := "it never did"
	if !last.IsZero() {
		when = "it did so last at " + credential.Timestamp(last) + ", by its own clock"
	}
	return metav1.Condition{
		Type: names.ConditionLeaseOverdue, Status: metav1.ConditionTrue, Reason: names.ReasonLeaseNotRenewed,
		Message: fmt.Sprintf("The agent is to renew its lease every %s; %s", grace.Duration(cluster), when),
	}
}

// renewed is the condition of a cluster whose agent renews its lease again.
func renewed() metav1.Condition {
	return metav1.Condition{
		Type: names.ConditionLeaseOverdue, Status: metav1.ConditionFalse, Reason: names.ReasonLeaseRenewed,
		Message: "The agent renews its lease",
	}
}

// unknown is the condition of a cluster whose agent stopped renewing its lease.
// See docs/reference/wire-contract.md#availability.
func unknown() metav1.Condition {
	return metav1.Condition{
		Type:    clusterv1.ManagedClusterConditionAvailable,
		Status:  metav1.ConditionUnknown,
		Reason:  names.ReasonLeaseUpdateStopped,
		Message: names.MessageLeaseUpdateStopped,
	}
}

// clockConditions compares the clock of an agent with the hub's by the time of a
// renewal. At the first observation of a lease the renewal may be old, so only an
// agreement is conclusive.
// See docs/reference/wire-contract.md#clock.
func clockConditions(cluster *clusterv1.ManagedCluster, renewed, now time.Time, fresh bool) []metav1.Condition {
	synced := metav1.Condition{
		Type:    clusterv1.ManagedClusterConditionClockSynced,
		Status:  metav1.ConditionTrue,
		Reason:  names.ReasonClockSynced,
		Message: names.MessageClockSynced,
	}
	skew := now.Sub(renewed).Abs()
	switch {
	case skew < grace.Of(cluster), cluster.Annotations[names.AnnotationSkipClockSync] == "true":
		return []metav1.Condition{synced}
	case !fresh:
		return nil
	}
	synced.Status = metav1.ConditionFalse
	synced.Reason = names.ReasonClockOutOfSync
	synced.Message = fmt.Sprintf("The clocks of the hub and the managed cluster differ by %v; synchronize them", skew.Round(time.Second))
	return []metav1.Condition{synced}
}
