package agent

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// works applies the works of one hub connection.
type works struct {
	agent   *agent
	session *session
	// hub reads works from the cache of the session.
	hub     client.Client
	records *records
	// events are recorded on the hub.
	events events.EventRecorder
}

func (r *works) setup(inner ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(inner).
		Named("work.manifestwork").
		For(&workv1.ManifestWork{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(concerns)})).
		WatchesRawSource(r.agent.works.source()).
		WithOptions(r.agent.options()).
		Complete(r)
}

// options are the options of both controllers.
func (a *agent) options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: a.config.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, mostRetry),
	}
}

// concerns reports whether an update of a work is for the agent to act on: its own
// writes are not.
func concerns(before, after *workv1.ManifestWork) bool {
	return before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.Contains(after.Finalizers, names.FinalizerManifestWork)
}

// Reconcile implements reconcile.Reconciler.
func (r *works) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var work workv1.ManifestWork
	err := r.hub.Get(ctx, req.NamespacedName, &work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		r.forget(req.Name)
		r.agent.applieds.add("", names.AppliedManifestWork(r.session.hash, req.Name))
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	s := r.scope(&work)
	p := applying(s)
	if !work.DeletionTimestamp.IsZero() {
		p = deleting(s)
	}
	return s.requeue.result(p.run(ctx))
}

// forget drops what is remembered of a work.
func (r *works) forget(name string) {
	r.agent.metrics.report(name, 0)
	for _, key := range r.records.forget(name) {
		r.agent.slots.free(key)
	}
	r.agent.inventory.Subscribe(workPrefix+name, nil)
}
