package hub

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
)

// Config configures the controller.
type Config struct {
	// Clock is the hub's.
	Clock clock.PassiveClock
}

// CacheObjects returns what the manager's cache has of the objects that the
// controllers of ManifestWorks read: no manifests, which are most of them, of works that
// no ManifestWorkReplicaSet made.
func CacheObjects() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&workv1.ManifestWork{}: {Transform: slim}}
}

// slim drops the fields that no controller reads. None writes them.
func slim(in any) (any, error) {
	if work, ok := in.(*workv1.ManifestWork); ok {
		work.ManagedFields = nil
		if !replicated(work) {
			work.Spec = workv1.ManifestWorkSpec{DeleteOption: work.Spec.DeleteOption}
		}
		work.Status.ResourceStatus = workv1.ManifestResourceStatus{}
	}
	return in, nil
}

// Setup adds the controller to mgr, whose cache has CacheObjects.
func Setup(mgr ctrl.Manager, config Config) error {
	r := &reconciler{client: mgr.GetClient(), clock: config.Clock}
	finishes := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		work, ok := obj.(*workv1.ManifestWork)
		if !ok {
			return false
		}
		_, finished := expiry(work)
		return finished
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("work.finished").
		For(&workv1.ManifestWork{}, builder.WithPredicates(finishes)).
		Complete(r)
}

type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var work workv1.ManifestWork
	if err := r.client.Get(ctx, req.NamespacedName, &work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	at, finished := expiry(&work)
	if !finished || !work.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := at.Sub(r.clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	// The resource version: one that is no longer complete is not deleted.
	err := r.client.Delete(ctx, &work, client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{}, nil // The change is an event.
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("delete the finished ManifestWork %s: %w", req, err)
	}
	klog.FromContext(ctx).Info("Deleted a finished ManifestWork", "ttlSecondsAfterFinished", *work.Spec.DeleteOption.TTLSecondsAfterFinished)
	return ctrl.Result{}, nil
}

// replicated reports whether a work belongs to a ManifestWorkReplicaSet.
func replicated(work *workv1.ManifestWork) bool {
	return work.Labels[workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey] != ""
}

// expiry returns when a work is to be deleted, and false when it is not finished or
// stays. That of a ManifestWorkReplicaSet stays, which would make it again.
func expiry(work *workv1.ManifestWork) (time.Time, bool) {
	option := work.Spec.DeleteOption
	if replicated(work) || option == nil || option.TTLSecondsAfterFinished == nil {
		return time.Time{}, false
	}
	complete := apimeta.FindStatusCondition(work.Status.Conditions, workv1.WorkComplete)
	if complete == nil || complete.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	// More seconds than a duration can hold would make it negative, which deletes at once.
	seconds := min(*option.TTLSecondsAfterFinished, int64(math.MaxInt64/time.Second))
	return complete.LastTransitionTime.Add(time.Duration(seconds) * time.Second), true
}
