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

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/mergepatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/driver"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/event"
)

// Owner is the field manager of this controller.
const Owner client.FieldOwner = "ocm.grant"

const (
	// recheck is the default interval at which a grant is compared with the external
	// service, and jitter its random extension.
	recheck = time.Hour
	jitter  = 0.2
	// conflictRecheck is how often a conflict of identifiers is checked again.
	conflictRecheck = time.Minute
	// callTimeout bounds one call of a driver.
	callTimeout = time.Minute
)

// Reconciler grants and revokes.
type Reconciler struct {
	// Client writes, and reads clusters from the cache.
	Client client.Client
	// Live reads from the API server, where stale data would leave a grant behind.
	Live client.Reader
	// Drivers are the enabled registration drivers.
	Drivers []driver.Hub
	// IdentityAnnotations are the annotations that identify clusters to registration
	// drivers.
	IdentityAnnotations []string
	// Namespace is the namespace of the records.
	Namespace string
	// Clock dates conditions.
	Clock clock.PassiveClock
	// Recorder records events.
	Recorder event.Recorder

	// records is the cache of the records.
	records store
}

// failure is an error that a condition reports under a reason.
type failure struct {
	reason string
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// action is the controller's next action for a cluster.
type action int

const (
	// provide: the cluster is accepted, and its resources on the hub exist.
	provide action = iota
	// retain: existing grants are repaired, none is added or revoked. The cluster is
	// being deleted and its agent has work to finish, or acceptance is in progress.
	retain
	// withdraw: every grant is revoked.
	withdraw
)

func actionFor(cluster *clusterv1.ManagedCluster) action {
	detaching := slices.Contains(cluster.Finalizers, names.FinalizerRegistration) ||
		slices.Contains(cluster.Finalizers, names.FinalizerResourceCleanup)
	switch {
	case !cluster.Spec.HubAcceptsClient, cluster.DeletionTimestamp != nil && !detaching:
		return withdraw
	case cluster.DeletionTimestamp != nil, !accepted(cluster):
		return retain
	}
	return provide
}

// accepted reports whether acceptance is complete. A cluster that it rejects, for
// example because of its name, is granted nothing.
func accepted(cluster *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return mergepatch.Settled(r.reconcile(ctx, req))
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.sweep(ctx, req.Name)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.act(ctx, cluster)
	if err != nil {
		return r.failed(ctx, cluster, err)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// act performs the action for a cluster and returns when to repeat it, 0 for never.
func (r *Reconciler) act(ctx context.Context, cluster *clusterv1.ManagedCluster) (time.Duration, error) {
	switch actionFor(cluster) {
	case withdraw:
		return 0, r.withdraw(ctx, cluster)
	case retain:
		return r.repair(ctx, cluster)
	case provide:
	}
	return r.provide(ctx, cluster)
}

// provide grants an accepted cluster what its driver plans, after revoking its other
// grants.
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
	return r.ensureGrant(ctx, cluster, by, known)
}

// ensureRecord stores the wanted record as the only one of its cluster, and returns
// it as it is stored.
func (r *Reconciler) ensureRecord(ctx context.Context, cluster *clusterv1.ManagedCluster, wanted record) (record, error) {
	known, others, err := partition(ctx, r.records, r.Namespace, cluster.Name, &wanted)
	if err == nil && known == nil {
		known, others, err = partition(ctx, store{Reader: r.Live}, r.Namespace, cluster.Name, &wanted)
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
	if err := clusterpatch.AddFinalizers(ctx, r.Client, Owner, cluster, names.FinalizerGrants); err != nil {
		return wanted, err
	}
	if known != nil {
		return *known, nil
	}
	return wanted, r.create(ctx, wanted)
}

// ensureGrant calls the driver and reports its progress.
func (r *Reconciler) ensureGrant(ctx context.Context, cluster *clusterv1.ManagedCluster, by driver.Granter, known record) (time.Duration, error) {
	var progress driver.Progress
	err := call(ctx, names.ReasonGrantFailed, func(ctx context.Context) (err error) {
		progress, err = by.Grant(ctx, known.grant)
		return err
	})
	if _, ok := errors.AsType[*driver.UnauthorizedError](err); ok && known.grantor() != "" {
		_, err := r.report(ctx, cluster, metav1.ConditionTrue, names.ReasonGrantedByHand, fmt.Sprintf(
			"%s granted the identity %s; the hub can neither verify nor repair the grant: %s", known.grantor(), known.grant.Key, err))
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
		fmt.Sprintf("The %s driver granted the identity %s", by.Type(), known.grant.Key))
	if progress.After > 0 {
		return progress.After, err
	}
	return wait.Jitter(recheck, jitter), err
}

// repair repairs the existing grants of a cluster.
func (r *Reconciler) repair(ctx context.Context, cluster *clusterv1.ManagedCluster) (time.Duration, error) {
	records, err := list(ctx, r.records, r.Namespace, cluster.Name)
	if err != nil {
		return 0, err
	}
	var after time.Duration
	for _, known := range records {
		by := r.granter(known.driver)
		if by == nil {
			continue // Reported when the grant is revoked.
		}
		if after, err = r.ensureGrant(ctx, cluster, by, known); err != nil {
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

// failed reports an error in the condition, unless it is an error of the hub's API,
// which is only retried.
func (r *Reconciler) failed(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) (ctrl.Result, error) {
	if conflict, ok := errors.AsType[*conflictError](err); ok {
		changed, err := r.report(ctx, cluster, metav1.ConditionFalse, names.ReasonIdentifierConflict, sentence(conflict))
		if changed {
			r.reportToHolder(ctx, conflict)
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
	// A retry cannot succeed before the cluster or the hub's flags change.
	if reported.reason == names.ReasonInvalidRegistration || reported.reason == names.ReasonDriverNotEnabled {
		return ctrl.Result{}, client.IgnoreNotFound(patchErr)
	}
	return ctrl.Result{}, errors.Join(err, client.IgnoreNotFound(patchErr))
}

// reportToHolder records an event about a conflict on the cluster that has the
// identifier.
func (r *Reconciler) reportToHolder(ctx context.Context, conflict *conflictError) {
	holder := &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: conflict.holder}, holder); err == nil {
		r.Recorder.Warning(holder, names.ReasonIdentifierConflict, "Grant", sentence(conflict))
	}
}
