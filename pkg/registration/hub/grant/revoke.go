package grant

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
)

// longest is the maximum length of a message in the condition.
const longest = 2000

// messageRevoked is the message for a denied cluster.
const messageRevoked = "The hub revoked the grant of the cluster's identity"

// withdraw revokes every grant of a cluster that is denied or being deleted.
func (r *Reconciler) withdraw(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	revoked, err := r.revokeRecorded(ctx, cluster)
	if err != nil || cluster.DeletionTimestamp != nil || !revoked && condition(cluster) == nil {
		return err
	}
	_, err = r.report(ctx, cluster, metav1.ConditionFalse, names.ReasonRevoked, messageRevoked)
	return err
}

// release revokes every grant of an accepted cluster that now registers without one,
// and removes the condition.
func (r *Reconciler) release(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if _, err := r.revokeRecorded(ctx, cluster); err != nil {
		return err
	}
	return clusterpatch.DropCondition(ctx, r.Client, Owner, cluster, names.ConditionRegistrationGranted)
}

// revokeRecorded revokes every recorded grant of a cluster, removes its finalizer, and
// reports whether there was a grant.
func (r *Reconciler) revokeRecorded(ctx context.Context, cluster *clusterv1.ManagedCluster) (revoked bool, err error) {
	records, err := list(ctx, store{Reader: r.Live}, r.Namespace, cluster.Name)
	if err != nil {
		return false, err
	}
	if err := r.revokeAll(ctx, cluster, records); err != nil {
		return false, err
	}
	return len(records) > 0, clusterpatch.RemoveFinalizer(ctx, r.Client, Owner, cluster, names.FinalizerGrants)
}

// sweep revokes the recorded grants of a cluster whose ManagedCluster is gone.
func (r *Reconciler) sweep(ctx context.Context, name string) error {
	records, err := list(ctx, store{Reader: r.Live}, r.Namespace, name)
	if err == nil && len(records) == 0 {
		return nil
	}
	gone := &clusterv1.ManagedCluster{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, gone); !apierrors.IsNotFound(err) {
		return err // It was created again; its event follows.
	}
	gone.Name = name
	if err == nil {
		err = r.revokeAll(ctx, gone, records)
	}
	if reported, ok := errors.AsType[*failure](err); ok {
		r.Recorder.Warning(gone, reported.reason, "Revoke", sentence(reported))
		if reported.reason == names.ReasonDriverNotEnabled {
			return nil // The controller retries when the hub starts with the driver.
		}
	}
	return err
}

// revokeAll revokes all records, even if one fails, and returns the first error.
func (r *Reconciler) revokeAll(ctx context.Context, cluster *clusterv1.ManagedCluster, records []record) error {
	var first error
	for _, old := range records {
		err := r.revoke(ctx, old)
		if err != nil && abandons(cluster) {
			r.Recorder.Warning(cluster, "GrantAbandoned", "Revoke", "Abandoned because "+names.AnnotationAbandonGrants+
				" is set: "+describe(old)+"; revocation failed: "+err.Error())
			err = nil
		}
		if err == nil {
			err = remove(ctx, r.Client, old)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// revoke revokes a grant with the driver of its record.
func (r *Reconciler) revoke(ctx context.Context, old record) error {
	by := r.granter(old.driver)
	if by == nil {
		return &failure{names.ReasonDriverNotEnabled, fmt.Errorf(
			"cannot revoke the grant of cluster %s because the registration driver %s is not enabled; "+
				"enable it on the hub, or delete the cluster, annotate it with %s=true and remove manually: %s",
			old.grant.Cluster, old.driver, names.AnnotationAbandonGrants, describe(old))}
	}
	return call(ctx, names.ReasonRevokeFailed, func(ctx context.Context) error { return by.Revoke(ctx, old.grant) })
}

// call bounds a call of a driver and returns its error as a failure, unless the hub
// is stopping.
func call(ctx context.Context, reason string, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := do(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("the external service did not respond within %s: %w", callTimeout, err)
	}
	return &failure{reason, err}
}

// abandons reports whether an administrator allows the deletion of a cluster without
// the revocation of its grants.
func abandons(cluster *clusterv1.ManagedCluster) bool {
	return cluster.DeletionTimestamp != nil && cluster.Annotations[names.AnnotationAbandonGrants] == "true"
}

// describe describes a grant for the administrator who has to remove it manually.
func describe(old record) string {
	parts := []string{fmt.Sprintf("%s grant with the identifier %s", old.driver, old.grant.Key)}
	for _, key := range slices.Sorted(maps.Keys(old.grant.Data)) {
		parts = append(parts, key+"="+old.grant.Data[key])
	}
	return strings.Join(parts, ", ")
}

func (r *Reconciler) report(ctx context.Context, cluster *clusterv1.ManagedCluster,
	status metav1.ConditionStatus, reason, message string,
) (changed bool, err error) {
	return clusterpatch.Conditions(ctx, r.Client, Owner, cluster, r.Clock.Now(), metav1.Condition{
		Type: names.ConditionRegistrationGranted, Status: status, Reason: reason, Message: excerpt.Of(message, longest),
	})
}

func condition(cluster *clusterv1.ManagedCluster) *metav1.Condition {
	return apimeta.FindStatusCondition(cluster.Status.Conditions, names.ConditionRegistrationGranted)
}

// sentence returns an error as the message of a condition.
func sentence(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
