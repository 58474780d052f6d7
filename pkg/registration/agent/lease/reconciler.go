package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

const (
	// defaultDuration is the duration of leaseDurationSeconds 0.
	defaultDuration = time.Minute
	// jitter spreads the renewals of many clusters.
	jitter = 0.25
	// requestTimeout bounds a request, so that it can be retried within the hub's
	// grace period of five durations.
	requestTimeout = 10 * time.Second
	firstRetry     = 200 * time.Millisecond
	lastRetry      = 10 * time.Second
)

// Reconciler renews the Lease of one cluster.
type Reconciler struct {
	// Client reads the ManagedCluster from a cache and the Lease from the API server.
	Client client.Client
	// Clock is the source of the renew time.
	Clock clock.PassiveClock
	// Observe is called with the result of every request to the hub.
	Observe func(error)

	next time.Time
}

// SetupWithManager adds the reconciler to the manager of a hub connection.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration.lease").
		For(&clusterv1.ManagedCluster{}).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// Reconcile renews the lease if it is due, and requeues the next renewal.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster clusterv1.ManagedCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		// Not accepted, or no longer. The lease may be old when it is accepted again.
		r.next = time.Time{}
		return ctrl.Result{}, nil
	}
	duration := time.Duration(cluster.Spec.LeaseDurationSeconds) * time.Second
	if duration <= 0 {
		duration = defaultDuration
	}
	now := r.Clock.Now()
	if r.next.After(now) && r.next.Sub(now) <= time.Duration(float64(duration)*(1+jitter)) {
		return ctrl.Result{RequeueAfter: r.next.Sub(now)}, nil
	}
	renewed, err := r.renew(ctx, req.Name, duration)
	r.Observe(err)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.next = renewed.Add(wait.Jitter(duration, jitter))
	return ctrl.Result{RequeueAfter: max(r.next.Sub(now), time.Millisecond)}, nil
}

// renew renews the lease, and returns when it was renewed. A first renewal within
// duration of the last one is skipped: the hub creates the lease when it accepts the
// cluster.
func (r *Reconciler) renew(ctx context.Context, namespace string, duration time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var lease coordinationv1.Lease
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.ManagedClusterLease}, &lease); err != nil {
		return time.Time{}, fmt.Errorf("get the lease: %w", err)
	}
	now := r.Clock.Now()
	if last := lease.Spec.RenewTime; r.next.IsZero() && last != nil && !last.After(now) && now.Sub(last.Time) < duration {
		return last.Time, nil
	}
	lease.Spec.RenewTime = new(metav1.NewMicroTime(now))
	if err := r.Client.Update(ctx, &lease); err != nil {
		return time.Time{}, fmt.Errorf("renew the lease: %w", err)
	}
	return now, nil
}
