package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/strategy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/status"
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

// options are those of both controllers.
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
	p := &pass{works: r, work: &work, record: r.records.of(work.Name, work.UID), now: r.agent.config.Clock.Now()}
	return p.requeue.result(p.reconcile(ctx))
}

// forget drops what is remembered of a work.
func (r *works) forget(name string) {
	r.agent.metrics.report(name, 0)
	for _, key := range r.records.forget(name) {
		r.agent.slots.free(key)
	}
	r.agent.inventory.Subscribe(workPrefix+name, nil)
}

// pass is one reconciliation of a work. The work is the cache's, and not changed.
type pass struct {
	*works

	work   *workv1.ManifestWork
	record *record
	// applied is nil while there is none.
	applied *workv1.AppliedManifestWork
	items   []*item
	// applier writes as the executor; nil before the first request.
	applier *strategy.Applier
	// before is what was reported of the manifests.
	before status.Index
	// interests are what the work subscribes to.
	interests []inventory.Interest
	now       time.Time
	requeue   requeue
}

// reconcile applies the work, or deletes what was applied of it.
func (p *pass) reconcile(ctx context.Context) error {
	if stale(p.work.ResourceVersion, p.record.written) {
		p.requeue.retry(cacheDelay)
		return nil
	}
	if err := p.readApplied(ctx); err != nil {
		return err
	}
	if p.work.DeletionTimestamp.IsZero() {
		return p.run(ctx)
	}
	return p.finalize(ctx)
}

// run applies the work and reports.
func (p *pass) run(ctx context.Context) error {
	if p.quiet() {
		return nil
	}
	p.record.quiet = 0
	if err := p.ensureFinalizer(ctx); err != nil {
		return err
	}
	p.before = status.NewIndex(p.work.Status.ResourceStatus.Manifests)
	p.resolve()
	if !p.watched() {
		p.requeue.retry(mostWatchStart)
		return nil // The inventory says when it knows the objects.
	}
	ready, err := p.ensureApplied(ctx)
	if err != nil || !ready {
		return err
	}
	errApply := p.apply(ctx)
	p.observe(ctx)
	errRemove := p.recordApplied(ctx)
	errReport := p.report(ctx)
	if errReport != nil {
		p.record.unreport(p.now)
	}
	p.record.denials = p.requeue.backOff(p.record.denials, p.work.Name)
	if err := errors.Join(errApply, errRemove, errReport); err != nil {
		return err
	}
	p.settle()
	return nil
}

// ensureFinalizer retains the work until what was applied of it is deleted.
func (p *pass) ensureFinalizer(ctx context.Context) error {
	if slices.Contains(p.work.Finalizers, names.FinalizerManifestWork) {
		return nil
	}
	return p.patchFinalizers(ctx, append(slices.Clone(p.work.Finalizers), names.FinalizerManifestWork))
}

func (p *pass) patchFinalizers(ctx context.Context, finalizers []string) error {
	before := p.skeleton()
	after := p.skeleton()
	after.Finalizers = finalizers
	if err := p.hub.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	p.wrote(after)
	return nil
}

// skeleton is the work without spec and status, for patches: an encoded spec can be
// large.
func (p *pass) skeleton() *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.work.Namespace, Name: p.work.Name, UID: p.work.UID, ResourceVersion: p.work.ResourceVersion,
		Finalizers: slices.Clone(p.work.Finalizers), // A response is decoded into it.
	}}
}

// wrote continues with the work that a write returned.
func (p *pass) wrote(work *workv1.ManifestWork) {
	p.work = work
	p.record.written = work.ResourceVersion
}
