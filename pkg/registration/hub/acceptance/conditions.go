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

// accepted are the two conditions that say whether the hub accepts a cluster:
// OCM's, and HubApprovedJoin, which always says the same.
func accepted(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: status, Reason: reason, Message: message,
	}
	mirror := condition
	mirror.Type = names.ConditionHubApprovedJoin
	return []metav1.Condition{condition, mirror}
}

// clockSynced is what is true of a lease that the hub itself has just written.
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

// failed tells the user about an error that will not pass by itself, and
// returns err so that it is tried again.
func (r *Reconciler) failed(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) error {
	if passing(err) {
		return err
	}
	_, patchErr := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubError, err.Error())
	if errors.Is(err, errForeign) {
		return patchErr // A retry finds the same; the label that is missing makes an event.
	}
	return errors.Join(err, patchErr)
}

// passing reports whether an error says more about the moment than about what
// was tried.
func passing(err error) bool {
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
