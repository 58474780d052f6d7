package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/work/agent/inventory"
)

const (
	// mostRemoval is how soon the deletion of an object is checked, even if the
	// inventory does not say that it ended.
	mostRemoval = time.Minute
	// never is the shortest grace period that stands for no eviction.
	never = 100 * 365 * 24 * time.Hour
)

// evictor deletes AppliedManifestWorks with what they own, also while the hub cannot be
// reached, and evicts those without a work.
type evictor struct{ *agent }

func (r *evictor) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("work.appliedmanifestwork").
		For(&workv1.AppliedManifestWork{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: watch.Updates(concernsApplied)})).
		WatchesRawSource(r.applieds.source()).
		WithOptions(r.options()).
		Complete(r)
}

func concernsApplied(before, after *workv1.AppliedManifestWork) bool {
	return before.Spec != after.Spec || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!apiequality.Semantic.DeepEqual(before.Status.EvictionStartTime, after.Status.EvictionStartTime)
}

// Reconcile implements reconcile.Reconciler.
func (r *evictor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var work workv1.AppliedManifestWork
	err := r.managed.Get(ctx, req.NamespacedName, &work)
	if apierrors.IsNotFound(err) {
		r.gone(ctx, req.Name)
		return ctrl.Result{}, nil
	}
	if err != nil || work.Spec.AgentID != r.agentID() {
		return ctrl.Result{}, err
	}
	var next time.Duration
	if work.DeletionTimestamp.IsZero() {
		next, err = r.evict(ctx, &work)
	} else {
		next, err = r.finalize(ctx, &work)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil // The cache is behind another writer.
	}
	return ctrl.Result{RequeueAfter: next}, err
}

// gone wakes the work that waits for the end of an AppliedManifestWork. One that is gone
// as well waits for nothing: it and this controller would wake each other without an end.
func (r *evictor) gone(ctx context.Context, name string) {
	r.inventory.Subscribe(name, nil)
	s := r.hub.session.Load()
	if s == nil {
		return
	}
	work, ours := strings.CutPrefix(name, names.AppliedManifestWork(s.hash, ""))
	key := client.ObjectKey{Namespace: r.config.Cluster, Name: work}
	if ours && s.works.Get(ctx, key, &workv1.ManifestWork{}, client.UnsafeDisableDeepCopy) == nil {
		r.works.add(key.Namespace, key.Name)
	}
}

// finalize deletes what an AppliedManifestWork owns, and lets it go when that is gone.
func (r *evictor) finalize(ctx context.Context, work *workv1.AppliedManifestWork) (time.Duration, error) {
	if !slices.Contains(work.Finalizers, names.FinalizerAppliedManifestWork) {
		return 0, nil
	}
	r.subscribe(work)
	pending, err := r.remover.remove(ctx, owner(work), work.Status.AppliedResources)
	if err != nil {
		return 0, err
	}
	after := work.DeepCopy()
	patch := client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})
	if len(pending) == 0 {
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == names.FinalizerAppliedManifestWork })
		return 0, r.managed.Patch(ctx, after, patch)
	}
	if len(pending) < len(work.Status.AppliedResources) {
		after.Status.AppliedResources = pending
		return r.remover.recheck(pending), r.managed.Status().Patch(ctx, after, patch)
	}
	return r.remover.recheck(pending), nil
}

// subscribe has the inventory wake the controller when an object is gone.
func (r *evictor) subscribe(work *workv1.AppliedManifestWork) {
	interests := make([]inventory.Interest, len(work.Status.AppliedResources))
	for i, resource := range work.Status.AppliedResources {
		interests[i] = inventory.Interest{Key: keyOf(resource)}
	}
	r.inventory.Subscribe(work.Name, interests)
}

// evict deletes an AppliedManifestWork that has had no work on the hub for the grace
// period. Without a connection to the hub it decides nothing.
func (r *evictor) evict(ctx context.Context, work *workv1.AppliedManifestWork) (time.Duration, error) {
	s := r.hub.session.Load()
	if s == nil || r.config.EvictionGracePeriod >= never {
		return 0, nil
	}
	managed, err := r.hasWork(ctx, s, work)
	if err != nil {
		return 0, err
	}
	start := work.Status.EvictionStartTime
	if managed {
		if start == nil {
			return 0, nil
		}
		return 0, r.patchEviction(ctx, work, nil)
	}
	now := r.config.Clock.Now()
	if start == nil {
		return r.config.EvictionGracePeriod, r.patchEviction(ctx, work, &metav1.Time{Time: now})
	}
	if left := start.Add(r.config.EvictionGracePeriod).Sub(now); left > 0 {
		return left, nil
	}
	return 0, client.IgnoreNotFound(r.managed.Delete(ctx, work, client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion}))
}

// hasWork reports whether the hub has the work of an AppliedManifestWork.
func (r *evictor) hasWork(ctx context.Context, s *session, work *workv1.AppliedManifestWork) (bool, error) {
	if work.Spec.HubHash != s.hash {
		return false, nil
	}
	key := client.ObjectKey{Namespace: r.config.Cluster, Name: work.Spec.ManifestWorkName}
	err := s.works.Get(ctx, key, &workv1.ManifestWork{}, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (r *evictor) patchEviction(ctx context.Context, work *workv1.AppliedManifestWork, start *metav1.Time) error {
	after := work.DeepCopy()
	after.Status.EvictionStartTime = start
	return r.managed.Status().Patch(ctx, after, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{}))
}
