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

// longest is how much of a sentence a condition takes.
const longest = 2000

// messageRevoked is what a denied cluster is told.
const messageRevoked = "What the hub had granted to the identity of the cluster is revoked"

// withdraw revokes everything that a cluster was granted and lets the cluster go.
func (r *Reconciler) withdraw(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	records, err := list(ctx, r.Live, r.Namespace, cluster.Name)
	if err != nil {
		return err
	}
	if err := r.revokeAll(ctx, cluster, records); err != nil {
		return err
	}
	if err := r.letGo(ctx, cluster); err != nil || cluster.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	if len(records) == 0 && condition(cluster) == nil {
		return nil
	}
	_, err = r.report(ctx, cluster, metav1.ConditionFalse, names.ReasonRevoked, messageRevoked)
	return err
}

// release revokes what an accepted cluster was granted that registers without a
// grant now, and takes away what tells of it.
func (r *Reconciler) release(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	records, err := list(ctx, r.Live, r.Namespace, cluster.Name)
	if err != nil {
		return err
	}
	if err := r.revokeAll(ctx, cluster, records); err != nil {
		return err
	}
	if err := r.letGo(ctx, cluster); err != nil {
		return err
	}
	return clusterpatch.DropCondition(ctx, r.Client, Owner, cluster, names.ConditionRegistrationGranted)
}

// sweep revokes what is recorded for a cluster whose ManagedCluster is gone.
func (r *Reconciler) sweep(ctx context.Context, name string) error {
	records, err := list(ctx, r.Live, r.Namespace, name)
	if err == nil && len(records) == 0 {
		return nil
	}
	gone := &clusterv1.ManagedCluster{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, gone); !apierrors.IsNotFound(err) {
		return err // It is new, and the cache will say so.
	}
	gone.Name = name
	if err == nil {
		err = r.revokeAll(ctx, gone, records)
	}
	if reported, ok := errors.AsType[*failure](err); ok {
		r.Recorder.Warning(gone, reported.reason, "Revoke", sentence(reported))
		if reported.reason == names.ReasonDriverNotEnabled {
			return nil // A hub that starts with the driver looks again.
		}
	}
	return err
}

// revokeAll revokes records one after the other, all of them even if one fails.
func (r *Reconciler) revokeAll(ctx context.Context, cluster *clusterv1.ManagedCluster, records []record) error {
	var first error
	for _, old := range records {
		err := r.revoke(ctx, old)
		if err != nil && abandons(cluster) {
			r.Recorder.Warning(cluster, "GrantAbandoned", "Revoke", "Left behind, because "+names.AnnotationAbandonGrants+
				" is set: "+describe(old)+"; revoking it failed: "+err.Error())
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

// revoke has the driver of a record remove what it made.
func (r *Reconciler) revoke(ctx context.Context, old record) error {
	by := r.granter(old.driver)
	if by == nil {
		return &failure{names.ReasonDriverNotEnabled, fmt.Errorf(
			"the driver %s, which has granted the identity of cluster %s, is not enabled, so the grant cannot be revoked: "+
				"enable it on the hub again; or delete the cluster, annotate it with %s=true, and remove by hand: %s",
			old.driver, old.grant.Cluster, names.AnnotationAbandonGrants, describe(old))}
	}
	return call(ctx, names.ReasonRevokeFailed, func(ctx context.Context) error { return by.Revoke(ctx, old.grant) })
}

// call bounds a call of a driver, and makes its error a failure unless the hub is
// stopping.
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
		err = fmt.Errorf("the outside service took longer than %s: %w", callTimeout, err)
	}
	return &failure{reason, err}
}

// abandons reports whether an administrator lets a cluster go without its grants
// being revoked.
func abandons(cluster *clusterv1.ManagedCluster) bool {
	return cluster.DeletionTimestamp != nil && cluster.Annotations[names.AnnotationAbandonGrants] == "true"
}

// describe says what a record is about, for somebody who has to remove it.
func describe(old record) string {
	parts := []string{fmt.Sprintf("%s grant with the identifier %s", old.driver, old.grant.Key)}
	for _, key := range slices.Sorted(maps.Keys(old.grant.Data)) {
		parts = append(parts, key+"="+old.grant.Data[key])
	}
	return strings.Join(parts, ", ")
}

// letGo takes the finalizer off a cluster.
func (r *Reconciler) letGo(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	kept := slices.DeleteFunc(slices.Clone(cluster.Finalizers), func(f string) bool { return f == names.FinalizerGrants })
	return clusterpatch.Finalizers(ctx, r.Client, Owner, cluster, kept)
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

// sentence makes an error the message of a condition.
func sentence(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
