package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/names"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/clusterpatch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/registration/hub/internal/rbac"
)

// validateName returns why a cluster of this name cannot be accepted. Admission
// rejects such names as well; this check does not depend on it, because an agent
// with access to a system namespace could take over the hub.
func validateName(name string) error {
	if err := names.ValidateClusterName(name); err != nil {
		return err
	}
	kubernetes := []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	if slices.Contains(kubernetes, name) || strings.HasPrefix(name, names.OperatorNamespace) {
		return fmt.Errorf("%w %q: the name is reserved for a system namespace", names.ErrClusterName, name)
	}
	return nil
}

// ensureFinalizers adds the finalizers of this controller and, if it is enabled, of
// garbage collection.
func (r *Reconciler) ensureFinalizers(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	finalizers := []string{names.FinalizerRegistration}
	if r.CollectGarbage {
		finalizers = append(finalizers, names.FinalizerResourceCleanup)
	}
	return clusterpatch.AddFinalizers(ctx, r.Client, Owner, cluster, finalizers...)
}

// errForeign is returned for a namespace that does not belong to a managed cluster.
var errForeign = errors.New("does not belong to a managed cluster")

// ensureNamespace creates the namespace of the cluster, or repairs its labels. An
// existing namespace belongs to the cluster only if its label names the cluster.
func (r *Reconciler) ensureNamespace(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	labels := rbac.Labels(cluster.Name, r.Labels)
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: cluster.Name}, live)
	if apierrors.IsNotFound(err) {
		created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name, Labels: labels}}
		if err = r.Client.Create(ctx, created, Owner); !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = r.Live.Get(ctx, client.ObjectKey{Name: cluster.Name}, live) // The cache has only namespaces with the label.
	}
	switch {
	case err != nil:
		return err
	case live.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is terminating; waiting for its deletion", cluster.Name)
	case rbac.HasLabels(live, labels):
		return nil
	case live.Labels[names.LabelClusterName] != cluster.Name:
		if err := r.owned(ctx, cluster); err != nil {
			return err
		}
	}
	config := corev1ac.Namespace(cluster.Name).WithLabels(labels)
	if err := r.Client.Apply(ctx, config, Owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("namespace %s: %w", cluster.Name, err)
	}
	return nil
}

// owned returns an error unless a namespace without the label was the cluster's
// before, and lost its label by mistake: the cluster was accepted. The check reads
// from the API server because no event follows when the cache catches up.
func (r *Reconciler) owned(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	now := &clusterv1.ManagedCluster{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return err
	}
	if apimeta.IsStatusConditionTrue(now.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) {
		return nil
	}
	return fmt.Errorf("namespace %[1]s exists and %[2]w; to use it for the cluster, run: kubectl label namespace %[1]s --overwrite %[3]s=%[1]s",
		cluster.Name, errForeign, names.LabelClusterName)
}

// ensureLease creates the lease, which the agent renews but cannot create. The hub
// never updates it.
func (r *Reconciler) ensureLease(ctx context.Context, cluster string) (created bool, err error) {
	key := client.ObjectKey{Namespace: cluster, Name: names.ManagedClusterLease}
	if err := r.Client.Get(ctx, key, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		return false, err
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: rbac.Labels(cluster, nil),
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(names.ManagedClusterLease),
			RenewTime:      &metav1.MicroTime{Time: r.Clock.Now()},
		},
	}
	err = r.Client.Create(ctx, lease, Owner)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("lease of cluster %s: %w", cluster, err)
	}
	return true, nil
}
