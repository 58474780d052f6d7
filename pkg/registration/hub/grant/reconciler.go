package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.grant"

const (
	// recheck is how often a grant is compared with what exists outside, where the
	// driver says nothing else, and jitter how much later it may be.
	recheck = time.Hour
	jitter  = 0.2
	// conflictRecheck is how often a cluster looks whether its identifier is free.
	conflictRecheck = time.Minute
	// callTimeout is how long one call of a driver may take.
	callTimeout = time.Minute
)

// Reconciler grants and revokes.
type Reconciler struct {
	// Client writes, and reads clusters from the cache.
	Client client.Client
	// Live reads from the API server, where a stale answer would leave a grant
	// behind.
	Live client.Reader
	// Drivers are the enabled registration drivers.
	Drivers []driver.Hub
	// Namespace is where the records are.
	Namespace string
	// Clock dates conditions.
	Clock clock.PassiveClock
	// Recorder tells users.
	Recorder event.Recorder

	// records reads records from a cache.
	records client.Reader
}

// failure is an error that a condition reports under a reason.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// duty is what is to be done about a cluster.
type duty int

const (
	// provide: the cluster is accepted and has its place on the hub.
	provide duty = iota
	// keep: nothing new is granted and nothing revoked. The cluster is being
	// deleted and its agent has work to finish, or acceptance is not through yet.
	keep
	// withdraw: nothing may stay.
	withdraw
)

func dutyFor(cluster *clusterv1.ManagedCluster) duty {
	held := slices.Contains(cluster.Finalizers, names.FinalizerRegistration) ||
		slices.Contains(cluster.Finalizers, names.FinalizerResourceCleanup)
	switch {
	case !cluster.Spec.HubAcceptsClient, cluster.DeletionTimestamp != nil && !held:
		return withdraw
	case cluster.DeletionTimestamp != nil, !accepted(cluster):
		return keep
	}
	return provide
}

// accepted reports whether acceptance is through: a cluster that it refuses, for
// its name for example, is granted nothing.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return clusterpatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.sweep(ctx, req.Name)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.attend(ctx, cluster)
	if err != nil {
		return r.failed(ctx, cluster, err)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// attend does what is to be done about a cluster and returns after what time it is
// to be done again, 0 for never.
func (r *Reconciler) attend(ctx context.Context, cluster *clusterv1.ManagedCluster) (time.Duration, error) {
	switch dutyFor(cluster) {
	case withdraw:
		return 0, r.withdraw(ctx, cluster)
	case keep:
		return r.keep(ctx, cluster)
	case provide:
	}
	return r.provide(ctx, cluster)
}

// provide grants an accepted cluster what its driver plans, after revoking
// whatever else it was granted.
func (r *Reconciler) provide(ctx context.Context, cluster *clusterv1.ManagedCluster) (time.Duration, error) {
	by, plan, err := driver.Plan(r.Drivers, cluster)
	if err != nil {
		return 0, &failure{names.ReasonInvalidRegistration, err}
	}
	if plan == nil {
		return 0, r.release(ctx, cluster)
	}
	wanted, err := newRecord(r.Namespace, by.Type(), *plan)
	if err != nil {
		return 0, &failure{names.ReasonInvalidRegistration, err}
	}
	known, err := r.ensureRecord(ctx, cluster, wanted)
	if err != nil {
		return 0, err
	}
	return r.make(ctx, cluster, by, known)
}

// ensureRecord makes the wanted record the only one of its cluster, and returns it
// as it is stored.
func (r *Reconciler) ensureRecord(ctx context.Context, cluster *clusterv1.ManagedCluster, wanted record) (record, error) {
	known, others, err := sorted(ctx, r.records, r.Namespace, cluster.Name, &wanted)
	if err == nil && known == nil {
		known, others, err = sorted(ctx, r.Live, r.Namespace, cluster.Name, &wanted)
	}
	if err != nil {
		return wanted, err
	}
	if err := r.revokeAll(ctx, cluster, others); err != nil {
		return wanted, err
	}
	if known == nil {
		if err := r.conflict(ctx, r.records, wanted); err != nil {
			return wanted, err
		}
	}
	if err := r.hold(ctx, cluster); err != nil {
		return wanted, err
	}
	if known != nil {
		return *known, nil
	}
	return wanted, r.create(ctx, wanted)
}

// make calls the driver and reports how far it is.
func (r *Reconciler) make(ctx context.Context, cluster *clusterv1.ManagedCluster, by driver.Granter, known record) (time.Duration, error) {
	var progress driver.Progress
	err := call(ctx, names.ReasonGrantFailed, func(ctx context.Context) (err error) {
		progress, err = by.Grant(ctx, known.grant)
		return err
	})
	if _, ok := errors.AsType[*driver.UnauthorizedError](err); ok && known.madeBy() != "" {
		_, err := r.report(ctx, cluster, metav1.ConditionTrue, names.ReasonGrantedByHand, fmt.Sprintf(
			"%s granted the identity %s of the cluster; the hub itself cannot look after it: %s", known.madeBy(), known.grant.Key, err))
		return wait.Jitter(recheck, jitter), err
	}
	if err != nil {
		return 0, err
	}
	if progress.Waiting != "" {
		_, err := r.report(ctx, cluster, metav1.ConditionFalse, names.ReasonGrantPending, progress.Waiting)
		return max(progress.After, time.Second), err
	}
	_, err = r.report(ctx, cluster, metav1.ConditionTrue, names.ReasonGranted,
		fmt.Sprintf("The %s driver has granted the identity %s of the cluster", by.Type(), known.grant.Key))
	if progress.After > 0 {
		return progress.After, err
	}
	return wait.Jitter(recheck, jitter), err
}

// keep repairs what was granted to a cluster whose agent still needs it.
func (r *Reconciler) keep(ctx context.Context, cluster *clusterv1.ManagedCluster) (time.Duration, error) {
	records, err := list(ctx, r.records, r.Namespace, cluster.Name)
	if err != nil {
		return 0, err
	}
	var after time.Duration
	for _, known := range records {
		by := r.granter(known.driver)
		if by == nil {
			continue // That is reported when the grant is to be revoked.
		}
		if after, err = r.make(ctx, cluster, by, known); err != nil {
			return 0, err
		}
	}
	return after, nil
}

func (r *Reconciler) granter(kind driver.AuthType) driver.Granter {
	for _, d := range r.Drivers {
		if granter, ok := d.(driver.Granter); ok && granter.Type() == kind {
			return granter
		}
	}
	return nil
}

// hold puts the finalizer on a cluster.
func (r *Reconciler) hold(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if slices.Contains(cluster.Finalizers, names.FinalizerGrants) {
		return nil
	}
	return clusterpatch.Finalizers(ctx, r.Client, Owner, cluster, append(slices.Clone(cluster.Finalizers), names.FinalizerGrants))
}

// failed reports an error that a user can do something about. Other errors are
// about the moment.
func (r *Reconciler) failed(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) (ctrl.Result, error) {
	if conflict, ok := errors.AsType[*conflictError](err); ok {
		changed, err := r.report(ctx, cluster, metav1.ConditionFalse, names.ReasonIdentifierConflict, sentence(conflict))
		if changed {
			r.tellHolder(ctx, conflict)
		}
		return ctrl.Result{RequeueAfter: wait.Jitter(conflictRecheck, jitter)}, err
	}
	reported, ok := errors.AsType[*failure](err)
	if !ok {
		return ctrl.Result{}, err
	}
	changed, patchErr := r.report(ctx, cluster, metav1.ConditionFalse, reported.reason, sentence(reported))
	if changed {
		r.Recorder.Warning(cluster, reported.reason, "Grant", sentence(reported))
	}
	// Only a change of the cluster or of the hub's flags helps here, and either is seen.
	if reported.reason == names.ReasonInvalidRegistration || reported.reason == names.ReasonDriverNotEnabled {
		return ctrl.Result{}, client.IgnoreNotFound(patchErr)
	}
	return ctrl.Result{}, errors.Join(err, client.IgnoreNotFound(patchErr))
}

// tellHolder tells the cluster that has an identifier of the one that wants it.
func (r *Reconciler) tellHolder(ctx context.Context, conflict *conflictError) {
	holder := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: conflict.holder}, holder); err == nil {
		r.Recorder.Warning(holder, names.ReasonIdentifierConflict, "Grant", sentence(conflict))
	}
}
