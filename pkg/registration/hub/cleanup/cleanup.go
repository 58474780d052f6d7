package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/helpers/pages"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
)

// Options select the ManagedClusters to delete.
type Options struct {
	// DeniedFor is how long a cluster must have been denied.
	DeniedFor time.Duration
	// DryRun only prints what would be deleted.
	DryRun bool
}

// Run deletes the ManagedClusters that are orphaned at now and prints them to out.
// It continues after a cluster that cannot be deleted, and returns all errors.
func Run(ctx context.Context, c client.Client, opts Options, now time.Time, out io.Writer) error {
	var errs []error
	deleted := 0
	err := pages.Each(ctx, c, &clusterv1.ManagedClusterList{}, func(cluster *clusterv1.ManagedCluster) {
		done, err := one(ctx, c, opts, cluster, now, out)
		if done {
			deleted++
		}
		errs = append(errs, err)
	})
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("managed clusters: %w", err))...)
	}
	fmt.Fprintf(out, "%d orphaned\n", deleted)
	return errors.Join(errs...)
}

func one(ctx context.Context, c client.Client, opts Options, cluster *clusterv1.ManagedCluster, now time.Time, out io.Writer) (bool, error) {
	since, ok := deniedSince(cluster)
	if !ok || now.Sub(since) < opts.DeniedFor || cluster.DeletionTimestamp != nil {
		return false, nil
	}
	age := now.Sub(since).Round(time.Second)
	if opts.DryRun {
		fmt.Fprintf(out, "managedcluster/%s would be deleted: denied for %v\n", cluster.Name, age)
		return true, nil
	}
	// The resource version: a cluster that is accepted at this moment is not deleted.
	err := c.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID, ResourceVersion: &cluster.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		fmt.Fprintf(out, "managedcluster/%s skipped: it changed meanwhile\n", cluster.Name)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("managed cluster %s: %w", cluster.Name, err)
	}
	fmt.Fprintf(out, "managedcluster/%s deleted: denied for %v\n", cluster.Name, age)
	return true, nil
}

// deniedSince returns since when a cluster that was accepted before has been denied.
// The reason distinguishes it from one that could not be accepted.
func deniedSince(cluster *clusterv1.ManagedCluster) (time.Time, bool) {
	if cluster.Spec.HubAcceptsClient {
		return time.Time{}, false
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != names.ReasonHubDenied {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}
