package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/grace"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.lease"

// Reconciler judges leases.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Clock is the hub's.
	Clock clock.PassiveClock
	// Recorder tells users.
	Recorder event.Recorder

	seen journal
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		r.seen.forget(req.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) == nil {
		return ctrl.Result{}, nil // There is no lease to expect yet.
	}
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: names.ManagedClusterLease}, lease)
	switch {
	case apierrors.IsNotFound(err) && cluster.DeletionTimestamp != nil:
		return ctrl.Result{}, r.write(ctx, cluster, unknown())
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil // Acceptance makes it, and that is an event.
	case err != nil:
		return ctrl.Result{}, err
	}
	return r.judge(ctx, cluster, lease)
}

func (r *Reconciler) judge(ctx context.Context, cluster *clusterv1.ManagedCluster, lease *coordinationv1.Lease) (ctrl.Result, error) {
	now, period := r.Clock.Now(), grace.Of(cluster)
	sign := signOf(cluster, lease)
	since, before, known := r.seen.note(cluster.Name, sign, now)
	var want []metav1.Condition
	if !known || !sign.renewed.Equal(before.renewed) {
		want = append(want, clockConditions(cluster, sign.renewed, now, known)...)
	}
	remaining := since.Add(period).Sub(now)
	if remaining <= 0 {
		want = append(want, unknown())
	}
	if err := r.write(ctx, cluster, want...); err != nil {
		return ctrl.Result{}, err
	}
	if remaining > 0 && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
		r.seen.calm(cluster.Name, period)
	}
	return ctrl.Result{RequeueAfter: max(remaining, 0)}, nil
}

// write brings conditions to what is wanted unless they say so already: words
// alone are not worth a write here.
func (r *Reconciler) write(ctx context.Context, cluster *clusterv1.ManagedCluster, want ...metav1.Condition) error {
	var news []metav1.Condition
	for _, condition := range want {
		if !apimeta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, condition.Type, condition.Status) {
			news = append(news, condition)
		}
	}
	if len(news) == 0 {
		return nil
	}
	if _, err := clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), news...); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, condition := range news {
		switch condition.Status {
		case metav1.ConditionUnknown:
			r.Recorder.Warning(cluster, "AvailableUnknown", "Judge", condition.Message)
		case metav1.ConditionFalse:
			r.Recorder.Warning(cluster, condition.Reason, "Judge", condition.Message)
		case metav1.ConditionTrue:
		}
	}
	return nil
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

// clockConditions judges the clock of an agent by the time it wrote into its
// lease a moment ago. How long ago is unknown at the first look at a lease; then
// only agreement can be concluded.
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
	synced.Message = fmt.Sprintf("The clocks of the hub and the managed cluster differ by %v: set the clock of the one that is wrong", skew.Round(time.Second))
	return []metav1.Condition{synced}
}
