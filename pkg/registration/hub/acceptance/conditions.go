package acceptance

import (
	"context"
	"errors"
	"net"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
)

func accepted(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: status, Reason: reason, Message: message,
	}
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

// denied reports whether the hub has finished denying the cluster.
func denied(cluster *clusterv1.ManagedCluster) bool {
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	return condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == names.ReasonHubDenied
}

func (r *Reconciler) condition(ctx context.Context, cluster *clusterv1.ManagedCluster,
	status metav1.ConditionStatus, reason, message string,
) (changed bool, err error) {
	return clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), accepted(status, reason, message))
}

// failed tells the user about an error that will not pass by itself, and
// returns err so that it is tried again.
func (r *Reconciler) failed(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) error {
	if passing(err) {
		return err
	}
	_, patchErr := r.condition(ctx, cluster, metav1.ConditionFalse, names.ReasonHubError, err.Error())
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
