package acceptance

import (
	"context"
	"errors"
	"net"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
)

// accepted returns the two conditions that report whether the hub accepts a
// cluster: OCM's, and HubApprovedJoin, which is always equal to it.
func accepted(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: status, Reason: reason, Message: message,
	}
	mirror := condition
	mirror.Type = names.ConditionHubApprovedJoin
	return []metav1.Condition{condition, mirror}
}

// clockSynced is the condition that follows from a lease that the hub has just
// written.
func clockSynced() metav1.Condition {
	return metav1.Condition{
		Type:    clusterv1.ManagedClusterConditionClockSynced,
		Status:  metav1.ConditionTrue,
		Reason:  names.ReasonClockSynced,
		Message: names.MessageClockSynced,
	}
}

func (r *Reconciler) condition(ctx context.Context, cluster *clusterv1.ManagedCluster,
	status metav1.ConditionStatus, reason, message string,
) (changed bool, err error) {
	return clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), accepted(status, reason, message)...)
}

// failed reports an error that is not transient in the conditions, and returns err
// for a retry.
func (r *Reconciler) failed(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) error {
	if transient(err) {
		return err
	}
	_, patchErr := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubError, err.Error())
	if errors.Is(err, errForeign) {
		return patchErr // A retry cannot succeed before the label is set, which triggers a reconciliation.
	}
	return errors.Join(err, patchErr)
}

// transient reports whether an error may disappear without a change of the cluster.
func transient(err error) bool {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return slices.ContainsFunc([]func(error) bool{
		apierrors.IsConflict, apierrors.IsServerTimeout, apierrors.IsTimeout, apierrors.IsTooManyRequests,
		apierrors.IsServiceUnavailable, apierrors.IsInternalError, apierrors.IsNotFound,
		apierrors.IsUnexpectedServerError, apierrors.IsAlreadyExists,
	}, func(is func(error) bool) bool { return is(err) })
}
